package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/lockstep-project/lockstep/controller/certificate"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// statusServerURL returns the address of the status server in pods.
func statusServerURL(options config.Options) string {
	host := options.WebhookService + "." + options.Namespace + ".svc"
	return cmp.Or(options.StatusServerURL, "https://"+net.JoinHostPort(host, strconv.Itoa(options.StatusServerPort)))
}

// flushing is the time for which the status server may write reports when the controller ends: 10,000 at its usual
// rate. The grace period of the Deployment has room for it.
const flushing = 20 * time.Second

// flusher writes the reports that it holds, until ctx ends.
type flusher interface{ Flush(ctx context.Context) }

// reporting is the part of the status server that others use. Without one, it is empty.
type reporting struct {
	// authority returns the current authority of its certificate, as PEM; empty while it is not known.
	authority func() string
	server    flusher
}

// run runs the manager, and after its end writes the reports that the server still holds. Written earlier, they would
// delay the next leader, which needs the lease of this one.
func (r reporting) run(ctx context.Context, mgr manager.Runnable) error {
	err := mgr.Start(ctx)
	if r.server != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushing)
		defer cancel()
		r.server.Flush(last)
	}
	if err != nil {
		return fmt.Errorf("running the controller: %w", err)
	}
	return nil
}

// connectForReports returns the status server's connections to the API server: two clients, each with a limit of its
// own. Reports must not make reconciling wait, nor proofs of identity writes, nor the reverse. The limiters are
// explicit, because controller-runtime otherwise makes one for each kind of object, and four kinds would have four
// times the limit of the options.
func connectForReports(
	restConfig *rest.Config, options config.Options, kinds client.Options,
) (settings statusserver.Options, err error) {
	settings.QueriesPerSecond = cmp.Or(options.StatusServerQueriesPerSecond, rest.DefaultQPS)
	settings.Burst = cmp.Or(options.StatusServerBurst, rest.DefaultBurst)
	for _, connected := range []*client.Client{&settings.Proofs, &settings.Writes} {
		limited := rest.CopyConfig(restConfig)
		limited.QPS, limited.Burst = settings.QueriesPerSecond, settings.Burst
		limited.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(limited.QPS, limited.Burst)
		if *connected, err = client.New(limited, kinds); err != nil {
			return statusserver.Options{}, fmt.Errorf("connecting to the cluster: %w", err)
		}
	}
	return settings, nil
}

// addStatusServer lets mgr run a status server with the webhooks' certificate.
func addStatusServer(
	mgr ctrl.Manager, restConfig *rest.Config, keeper *certificate.Keeper, options config.Options,
	registry prometheus.Registerer,
) (reporting, error) {
	settings, err := connectForReports(restConfig, options, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return reporting{}, err
	}
	settings.Address = net.JoinHostPort(options.WebhookHost, strconv.Itoa(options.StatusServerPort))
	settings.Cached = mgr.GetClient()
	settings.Clock, settings.Salt = clock.RealClock{}, rand.Text()
	settings.Class, settings.Registry = options.Class(), registry
	var authority func() string
	if keeper != nil {
		settings.GetCertificate = keeper.GetCertificate
		authority = func() string { return string(keeper.Trusted()) }
	} else {
		var watcher *certwatcher.CertWatcher
		if watcher, authority, err = certificateFiles(options.WebhookCertDir); err != nil {
			return reporting{}, err
		}
		if err = mgr.Add(watcher); err != nil {
			return reporting{}, fmt.Errorf("following the certificate of the status server: %w", err)
		}
		settings.GetCertificate = watcher.GetCertificate
	}
	server := statusserver.New(settings)
	if err = mgr.Add(server); err != nil {
		return reporting{}, fmt.Errorf("adding the status server: %w", err)
	}
	if err = mgr.AddReadyzCheck("status-server", server.Ready); err != nil {
		return reporting{}, fmt.Errorf("adding status-server to readyz: %w", err)
	}
	return reporting{authority: authority, server: server}, nil
}

// certificateFiles follows the certificate that another party maintains in a folder, once it is run, and reads the
// authority beside it.
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
