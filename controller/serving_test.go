package controller_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// newServer builds the webhook server on a free port on loopback; there is no API server.
func newServer(t *testing.T, management, folder string) (webhook.Server, config.Options, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	options := config.Default()
	options.CertManagement, options.WebhookCertDir = management, folder
	options.WebhookHost, options.WebhookPort = "127.0.0.1", listener.Addr().(*net.TCPAddr).Port
	scheme, err := controller.Scheme(gangapi.Native)
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := controller.NewWebhooks(&rest.Config{Host: "https://127.0.0.1:1"}, scheme, options)
	return server, options, err
}

// start runs a server until the test ends.
func start(t *testing.T, server webhook.Server) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within 10 s", what)
}

// writeCertificate puts a fresh certificate into a folder and returns it.
func writeCertificate(t *testing.T, folder string) []byte {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "tls.crt"), cert, 0o600),
		os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(cert)
	return block.Bytes
}

func address(options config.Options) string {
	return net.JoinHostPort(options.WebhookHost, strconv.Itoa(options.WebhookPort))
}

// dial connects as a client that would rather speak HTTP/2.
func dial(t *testing.T, options config.Options) (tls.ConnectionState, error) {
	t.Helper()
	connection, err := tls.Dial("tcp", address(options), &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"},
	})
	if err != nil {
		return tls.ConnectionState{}, err
	}
	return connection.ConnectionState(), connection.Close()
}

func TestExternalCertificate_FilesAreReloaded(t *testing.T) {
	folder := t.TempDir()
	first := writeCertificate(t, folder)
	server, options, err := newServer(t, config.External, folder)
	if err != nil {
		t.Fatal(err)
	}
	ready := server.StartedChecker()
	if ready(&http.Request{}) == nil {
		t.Error("ready before the start")
	}
	start(t, server)
	eventually(t, "ready", func() bool { return ready(&http.Request{}) == nil })
	state, err := dial(t, options)
	if err != nil || !bytes.Equal(state.PeerCertificates[0].Raw, first) {
		t.Errorf("the certificate of the folder is not served (%v)", err)
	}
	if state.NegotiatedProtocol != "http/1.1" {
		t.Errorf("the server speaks %q, want http/1.1", state.NegotiatedProtocol)
	}
	second := writeCertificate(t, folder)
	eventually(t, "serving the new certificate", func() bool {
		state, err := dial(t, options)
		return err == nil && bytes.Equal(state.PeerCertificates[0].Raw, second)
	})
}

func TestExternalCertificate_MissingFilesAreUserError(t *testing.T) {
	folder := t.TempDir()
	_, _, err := newServer(t, config.External, folder)
	if !errors.Is(err, controller.ErrNoCertificate) || !strings.Contains(err.Error(), folder) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want ErrNoCertificate on one line with the folder", err)
	}
}

// TestReadyz_WaitsForOwnCertificate holds that readyz is red until there is a certificate.
func TestReadyz_WaitsForOwnCertificate(t *testing.T) {
	server, options, err := newServer(t, config.Self, "")
	if err != nil {
		t.Fatal(err)
	}
	start(t, server)
	eventually(t, "listening", func() bool {
		connection, err := net.Dial("tcp", address(options))
		return err == nil && connection.Close() == nil
	})
	if server.StartedChecker()(&http.Request{}) == nil {
		t.Error("ready without a certificate")
	}
	if _, err := dial(t, options); err == nil {
		t.Error("a client was served without a certificate")
	}
}
