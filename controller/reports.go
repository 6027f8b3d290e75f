package controller

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller/certificate"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// statusServerURL is the address that pods are told.
func statusServerURL(options config.Options) string {
	host := options.WebhookService + "." + options.Namespace + ".svc"
	return cmp.Or(options.StatusServerURL, "https://"+net.JoinHostPort(host, strconv.Itoa(options.StatusServerPort)))
}

// addStatusServer lets mgr run a status server with the webhooks' certificate, and returns what tells the authority that
// signed that, as PEM, as it is by then; empty while it is not known.
func addStatusServer(
	mgr ctrl.Manager, restConfig *rest.Config, keeper *certificate.Keeper, options config.Options,
	registry prometheus.Registerer,
) (authority func() string, err error) {
	// Its own client: reports must not make reconciling wait, nor the reverse.
	limited := rest.CopyConfig(restConfig)
	limited.QPS = cmp.Or(options.StatusServerQueriesPerSecond, rest.DefaultQPS)
	limited.Burst = cmp.Or(options.StatusServerBurst, rest.DefaultBurst)
	live, err := client.New(limited, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	settings := statusserver.Options{
		Address: net.JoinHostPort(options.WebhookHost, strconv.Itoa(options.StatusServerPort)),
		Cached:  mgr.GetClient(), Live: live, QueriesPerSecond: limited.QPS, Burst: limited.Burst,
		Clock: clock.RealClock{}, Registry: registry,
	}
	if keeper != nil {
		settings.GetCertificate = keeper.GetCertificate
		authority = func() string { return string(keeper.Trusted()) }
	} else {
		var watcher *certwatcher.CertWatcher
		if watcher, authority, err = certificateFiles(options.WebhookCertDir); err != nil {
			return nil, err
		}
		if err = mgr.Add(watcher); err != nil {
			return nil, fmt.Errorf("following the certificate of the status server: %w", err)
		}
		settings.GetCertificate = watcher.GetCertificate
	}
	server := statusserver.New(settings)
	if err = mgr.Add(server); err != nil {
		return nil, fmt.Errorf("adding the status server: %w", err)
	}
	if err = mgr.AddReadyzCheck("status-server", server.Ready); err != nil {
		return nil, fmt.Errorf("adding status-server to readyz: %w", err)
	}
	return authority, nil
}

// certificateFiles follows the certificate that somebody else keeps in a folder, once it is run, and reads the authority
// beside it.
func certificateFiles(folder string) (*certwatcher.CertWatcher, func() string, error) {
	file := filepath.Join(folder, certificate.AuthorityCert)
	if _, err := os.Stat(file); err != nil {
		return nil, nil, fmt.Errorf("%w: the status server needs its authority too: --webhook-cert-dir=%s: %w",
			ErrNoCertificate, folder, err)
	}
	watcher, err := certwatcher.New(
		filepath.Join(folder, certificate.ServingCert), filepath.Join(folder, certificate.ServingKey))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: --webhook-cert-dir=%s: %w", ErrNoCertificate, folder, err)
	}
	return watcher, func() string {
		content, _ := os.ReadFile(file) // while it is being replaced there is none
		return string(content)
	}, nil
}
