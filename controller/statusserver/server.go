package statusserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// idle is how long a connection is kept that says nothing.
	idle = 2 * time.Minute
	// farewell is how long requests may take that are being answered when the server ends.
	farewell = 5 * time.Second
	// headerLimit is room for a token of any size that the API server makes.
	headerLimit = 32 << 10
)

// errNotServing indicates a server that does not listen yet.
var errNotServing = errors.New("the status server does not listen yet")

// Options are what a server is made of. All fields are required.
type Options struct {
	// Address is host:port; without a host, all addresses.
	Address string
	// GetCertificate gives the certificate to serve with, as it is by then; an error means that there is none yet.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Cached reads TrainJobs and JobSets from a cache.
	Cached client.Reader
	// Live reads past caches and writes. It is the server's own: its QueriesPerSecond and Burst, which are told here too,
	// must not be what others wait for. Both are above 0.
	Live             client.Client
	QueriesPerSecond float32
	Burst            int
	Clock            clock.PassiveClock
	// Registry takes the counter of requests.
	Registry prometheus.Registerer
}

// Server takes reports on every replica.
type Server struct {
	address     string
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	handler     http.Handler
	serving     atomic.Pointer[net.TCPAddr]
}

// New makes a server that does nothing before Start.
func New(options Options) *Server {
	return &Server{
		address: options.Address, certificate: options.GetCertificate,
		handler: &handler{
			cached: options.Cached, live: options.Live, clock: options.Clock,
			identities: newIdentities(options.Cached, options.Live, options.Clock),
			limits:     newLimits(options.QueriesPerSecond, options.Burst, options.Clock),
			requests: promauto.With(options.Registry).NewCounterVec(prometheus.CounterOpts{
				Namespace: "lockstep", Subsystem: "status_server", Name: "requests_total",
				Help: "Requests to the status server, by HTTP code.",
			}, []string{"code"}),
		},
	}
}

// NeedLeaderElection is false: a pod may reach any replica.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends, and then until what is being answered is answered.
func (s *Server) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("status server: listening on %s: %w", s.address, err)
	}
	// HTTP/2 lets one client occupy a server with streams that it resets.
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	server := &http.Server{
		Handler: s.handler, Protocols: protocols,
		TLSConfig:   &tls.Config{GetCertificate: s.certificate, MinVersion: tls.VersionTLS12},
		ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: idle, MaxHeaderBytes: headerLimit,
		// Handshakes of strangers that fail are no news.
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		ended <- server.Shutdown(last)
	}()
	address, _ := listener.Addr().(*net.TCPAddr)
	s.serving.Store(address)
	defer s.serving.Store(nil)
	klog.FromContext(ctx).Info("Status server listens", "address", address)
	if err = server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("status server: %w", err)
	}
	if err = <-ended; err != nil {
		return fmt.Errorf("status server: ending: %w", err)
	}
	return nil
}

// Ready is for readyz: it fails until the server listens and has a certificate.
func (s *Server) Ready(*http.Request) error {
	if s.serving.Load() == nil {
		return errNotServing
	}
	if _, err := s.certificate(&tls.ClientHelloInfo{}); err != nil {
		return fmt.Errorf("status server: %w", err)
	}
	return nil
}

// Listens is where the server listens; nil if it does not.
func (s *Server) Listens() *net.TCPAddr { return s.serving.Load() }
