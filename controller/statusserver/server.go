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
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller/class"
)

const (
	// idle is the time after which a silent connection is closed.
	idle = 2 * time.Minute
	// farewell is the time for requests in progress when the server ends.
	farewell = 5 * time.Second
	// headerLimit is room for a token of any size that the API server makes.
	headerLimit = 32 << 10
)

// errNotServing indicates a server that does not listen yet.
var errNotServing = errors.New("the status server does not listen yet")

// Options are the parts of a server. All fields but Salt and Class are required.
type Options struct {
	// Address is host:port; without a host, all addresses.
	Address string
	// GetCertificate returns the current serving certificate; an error means that there is none yet.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Cached reads TrainJobs and JobSets from a cache.
	Cached client.Reader
	// Proofs reads past caches and reviews tokens, and Writes writes reports. Each is the server's own, with a limit of
	// its own of QueriesPerSecond and Burst, both above 0: neither waits for the other, nor does a reconciliation for
	// either.
	Proofs, Writes   client.Client
	QueriesPerSecond float32
	Burst            int
	Clock            clock.PassiveClock
	// Salt strews the writes of this replica; replicas with different ones rarely write the same job at once.
	Salt string
	// Class are the jobs from which reports are accepted: those that this controller handles.
	Class class.Class
	// Registry takes the server's metrics.
	Registry prometheus.Registerer
}

// Server takes reports on every replica.
type Server struct {
	address     string
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	handler     http.Handler
	writer      *writer
	serving     atomic.Pointer[net.TCPAddr]
	// started is set once Start was called, and ended is closed when it has returned.
	started atomic.Bool
	ended   chan struct{}
}

// New makes a server that does nothing before Start.
func New(options Options) *Server {
	reports := newHeld(options.Clock, options.Salt)
	counters := newCounters(options.Registry, func() float64 {
		_, waiting := reports.count()
		return float64(waiting)
	})
	jobs := func() int {
		count, _ := reports.count()
		return count
	}
	return &Server{
		address: options.Address, certificate: options.GetCertificate, ended: make(chan struct{}),
		handler: &handler{
			cached: options.Cached, clock: options.Clock, held: reports, class: options.Class,
			identities: newIdentities(options, jobs, counters.proofs),
			limits:     newLimits(options.QueriesPerSecond, options.Burst, options.Clock),
			requests:   counters.requests, reports: counters.reports,
		},
		writer: &writer{
			cached: options.Cached, live: options.Writes, clock: options.Clock, held: reports,
			writes: counters.writes, delays: counters.delays,
		},
	}
}

// NeedLeaderElection is false: a pod may reach any replica.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends, and then until the answers and writes in progress are complete. It may be called once.
func (s *Server) Start(ctx context.Context) error {
	s.started.Store(true)
	defer close(s.ended)
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
		err := server.Shutdown(last)
		if err != nil { // a report that is accepted from now on might not be written: its sender should not see that it was
			err = errors.Join(err, server.Close())
		}
		ended <- err
	}()
	address, _ := listener.Addr().(*net.TCPAddr)
	s.serving.Store(address)
	defer s.serving.Store(nil)
	defer s.startWriting(ctx)()
	klog.FromContext(ctx).Info("Status server listens", "address", address)
	if err = server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("status server: %w", err)
	}
	if err = <-ended; err != nil {
		return fmt.Errorf("status server: ending: %w", err)
	}
	return nil
}

// startWriting writes due reports until the returned function is called.
func (s *Server) startWriting(ctx context.Context) (finish func()) {
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() { s.writer.run(writing) })
	return func() {
		stop()
		group.Wait()
	}
}

// Flush writes the held reports after Start has returned, until ctx ends. It is apart from Start so that another
// replica can lead meanwhile. A manager that loses its lease does not wait for Start, so Flush does: reports are
// accepted until then.
func (s *Server) Flush(ctx context.Context) {
	if s.started.Load() {
		select {
		case <-s.ended:
		case <-ctx.Done():
		}
	}
	if left := s.writer.drain(ctx); left > 0 {
		klog.FromContext(ctx).Error(nil, "Stopped before all reports were written", "reports", left)
	}
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

// Listens returns the address on which the server listens; nil if it does not.
func (s *Server) Listens() *net.TCPAddr { return s.serving.Load() }
