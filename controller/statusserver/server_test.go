package statusserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// serve runs the fixture's server on loopback until the test ends, and returns a client that trusts it, and its address.
func (w *fixture) serve() (*http.Client, string) {
	w.t.Helper()
	client, address, stop := w.listen()
	w.t.Cleanup(func() {
		if err := stop(); err != nil {
			w.t.Error(err)
		}
	})
	return client, address
}

// listen runs the fixture's server on loopback until stop is called.
func (w *fixture) listen() (trusting *http.Client, address string, stop func() error) {
	w.t.Helper()
	pair, roots := certificate(w.t)
	options := w.options()
	options.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair, nil }
	w.server = statusserver.New(options)
	stop = run(w.t, w.server)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, "https://" + w.server.Listens().String(), stop
}

func certificate(tb testing.TB) (*tls.Certificate, *x509.CertPool) {
	tb.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		tb.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	return &pair, roots
}

// run starts a server, waits until it listens, and returns the function that stops it.
func run(tb testing.TB, server *statusserver.Server) (stop func() error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	for range 1000 {
		if server.Listens() != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if server.Listens() == nil {
		cancel()
		tb.Fatalf("the server does not listen: %v", <-done)
	}
	return func() error {
		cancel()
		return <-done
	}
}

// The certificate is read at each handshake, so that a renewed one is served at once; and readyz waits for the first.
func TestServer_ReadsCertificatePerHandshake(t *testing.T) {
	errNone := errors.New("none yet")
	var current *tls.Certificate
	server := statusserver.New(statusserver.Options{
		Address: "127.0.0.1:0", Registry: prometheus.NewRegistry(), Clock: clock.RealClock{},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if current == nil {
				return nil, errNone
			}
			return current, nil
		},
	})
	if server.Ready(nil) == nil {
		t.Error("ready before the start")
	}
	stop := run(t, server)
	if err := server.Ready(nil); !errors.Is(err, errNone) {
		t.Errorf("without a certificate: %v", err)
	}
	for range 2 {
		pair, roots := certificate(t)
		current = pair
		if err := server.Ready(nil); err != nil {
			t.Error(err)
		}
		connection, err := tls.Dial("tcp", server.Listens().String(), &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.Close()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if server.Ready(nil) == nil {
		t.Error("ready after the end")
	}
}

func TestServer_TakenPortIsAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	server := statusserver.New(
		statusserver.Options{
			Address: listener.Addr().String(), Registry: prometheus.NewRegistry(), Clock: clock.RealClock{},
		},
	)
	if err := server.Start(t.Context()); err == nil || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("error %v, want one with the address", err)
	}
}
