package controller_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/config"
)

func TestWherePodsReport(t *testing.T) {
	options := config.Default()
	const service = "https://lockstep-controller-webhook.lockstep-system.svc:10443"
	if got := controller.StatusServerURL(options); got != service {
		t.Errorf("in a cluster %s, want %s", got, service)
	}
	options.StatusServerURL = "https://127.0.0.1:1"
	if got := controller.StatusServerURL(options); got != options.StatusServerURL {
		t.Errorf("elsewhere %s, want %s", got, options.StatusServerURL)
	}
}

// Pods must be told what to trust, so a folder without it is the user's fault, told at the start.
func TestTheAuthorityIsReadBesideTheCertificate(t *testing.T) {
	folder := t.TempDir()
	authority := filepath.Join(folder, "ca.crt")
	for _, prepare := range []func(){
		func() { writeCertificate(t, folder) },
		func() {
			_ = os.Remove(filepath.Join(folder, "tls.crt"))
			_ = os.WriteFile(authority, []byte("first"), 0o600)
		},
	} {
		prepare()
		_, _, err := controller.CertificateFiles(folder)
		if !errors.Is(err, controller.ErrNoCertificate) || !strings.Contains(err.Error(), folder) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want ErrNoCertificate on one line with the folder", err)
		}
	}
	writeCertificate(t, folder)
	watcher, read, err := controller.CertificateFiles(folder)
	if err != nil {
		t.Fatal(err)
	}
	if served, err := watcher.GetCertificate(nil); served == nil || err != nil {
		t.Errorf("no certificate: %v", err)
	}
	for _, content := range []string{"first", "second"} {
		if err := os.WriteFile(authority, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != content {
			t.Errorf("the authority is %q, want %q", got, content)
		}
	}
}
