package controller_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/config"
)

func TestStatusServerURL_ServiceOrOption(t *testing.T) {
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

// Pods need the authority to trust, so a folder without it is the user's error, which the start reports.
func TestCertificateFiles_NeedTheAuthority(t *testing.T) {
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

// After a restart thousands of pods prove their identity while their reports are written. Each of the two spends its
// own limit, over all kinds of objects, and leaves the other's unchanged.
func TestStatusServer_ProofsAndWritesHaveLimitsOfTheirOwn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		_, _ = writer.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	options := config.Default()
	options.StatusServerQueriesPerSecond, options.StatusServerBurst = 0.001, 4
	settings, err := controller.ConnectForReports(&rest.Config{Host: server.URL}, options,
		client.Options{Scheme: scheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	// spend makes calls until one would have to wait, at most twice as many as there may be.
	spend := func(with client.Client) (calls int) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for ; calls < 2*options.StatusServerBurst; calls++ {
			var object client.Object = &corev1.Pod{}
			if calls%2 == 1 {
				object = &batchv1.Job{}
			}
			if err := with.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "train"}, object); err != nil {
				break
			}
		}
		return calls
	}
	for _, with := range []client.Client{settings.Proofs, settings.Writes} {
		if calls := spend(with); calls != options.StatusServerBurst {
			t.Errorf("%d calls without waiting, want %d, whatever their kind and whatever the other client has spent",
				calls, options.StatusServerBurst)
		}
	}
}

// A server that holds reports until the manager has ended: another replica leads meanwhile.
type holding struct {
	managing bool
	flushed  int
	patience time.Duration
}

// Start is the manager's.
func (h *holding) Start(ctx context.Context) error {
	h.managing = true
	<-ctx.Done()
	h.managing = false
	return errors.New("leader election lost")
}

// Flush is the status server's.
func (h *holding) Flush(ctx context.Context) {
	if deadline, bounded := ctx.Deadline(); !h.managing && bounded && ctx.Err() == nil {
		h.flushed++
		h.patience = time.Until(deadline)
	}
}

// However the manager ends, the reports that are held are written then, within bounds, although the controller's
// context has ended.
func TestReporting_FlushesWhenTheManagerHasEnded(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	server := &holding{}
	if err := controller.RunThenFlush(ctx, server, server); err == nil {
		t.Error("the manager's error is lost")
	}
	if server.flushed != 1 || server.patience > controller.Flushing || server.patience < controller.Flushing/2 {
		t.Errorf("flushed %d times for %v, want once for %v", server.flushed, server.patience, controller.Flushing)
	}
}
