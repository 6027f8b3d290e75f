package controller

import (
	"crypto/tls"

	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lockstep-project/lockstep/controller/certificate"
	"github.com/lockstep-project/lockstep/controller/config"
)

// newMetrics returns the options of the metrics server: with the certificate of the webhooks, which a scraper can
// verify; without webhooks with a self-signed one, which only encrypts. authenticateScrapers authorizes the scrapers.
// keeper is nil if Lockstep does not manage the certificate.
func newMetrics(options config.Options, keeper *certificate.Keeper) metricsserver.Options {
	settings := metricsserver.Options{BindAddress: options.MetricsBindAddress, SecureServing: options.MetricsSecure}
	if !options.MetricsSecure {
		return settings
	}
	settings.FilterProvider = authenticateScrapers(clock.RealClock{})
	settings.TLSOpts = []func(*tls.Config){withoutStreams}
	switch {
	case keeper != nil:
		settings.TLSOpts = append(settings.TLSOpts, func(c *tls.Config) { c.GetCertificate = keeper.GetCertificate })
	case options.WebhookPort != 0:
		settings.CertDir = options.WebhookCertDir
	}
	return settings
}

// withoutStreams leaves HTTP/2 out: it lets one client occupy a server with streams that it resets, and no client of
// this controller needs streams.
func withoutStreams(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }
