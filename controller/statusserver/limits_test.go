package statusserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// TestAJobIsLimited floods with 100 reports a second for a minute of virtual time.
func TestAJobIsLimited(t *testing.T) {
	w := newWorld(t, append(family("flood"), family("train")...)...)
	codes := map[int]int{}
	for i := range 6000 {
		w.clock.SetTime(start().Add(time.Duration(i) * 10 * time.Millisecond))
		code, _ := w.post("flood", token("flood-pod", "flood"), progress(i%101))
		codes[code]++
		if i%500 == 0 { // every 5 s, as Kubeflow's SDK
			if code, body := w.post("train", token("train-pod", "train"), progress(i/60)); code != http.StatusOK {
				t.Errorf("another job's report after %d of the flood: %d %s", i, code, body)
			}
		}
	}
	if codes[200] < 60 || codes[200] > 70 || codes[200]+codes[429] != 6000 {
		t.Errorf("of the flood %v, want one a second and 10 at first answered with 200, the rest with 429", codes)
	}
	path := plan.StatusPath(types.NamespacedName{Namespace: namespace, Name: "flood"})
	if response := w.send(http.MethodPost, path, token("flood-pod", "flood"), progress(1)); response.Code != 429 ||
		response.Header().
			Get("Retry-After") !=
			"1" || !strings.Contains(response.Body.String(), `"reason":"TooManyRequests"`) {
		t.Errorf("answer %d %s, Retry-After %q", response.Code, response.Body, response.Header().Get("Retry-After"))
	}
}

// TestAFloodDelaysNobody sends 300 reports at once over the network, to an API server that takes none of that job's any
// more: what another job reports meanwhile is written, with no more than the limit before it.
func TestAFloodDelaysNobody(t *testing.T) {
	w := newWorld(t, append(family("flood"), family("train")...)...)
	var written atomic.Int64
	stuck := make(chan struct{})
	w.writing = func(job string) error {
		if job == "flood" {
			written.Add(1)
			<-stuck
		}
		return nil
	}
	client, base := w.serve()
	report := func(job string) int {
		key := types.NamespacedName{Namespace: namespace, Name: job}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+plan.StatusPath(key),
			strings.NewReader(progress(1)))
		if err != nil {
			t.Error(err)
			return 0
		}
		request.Header.Set("Authorization", "bearer  "+token(job+"-pod", job))
		response, err := client.Do(request)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	var flood, refused sync.WaitGroup
	refused.Add(290)
	for range 300 {
		flood.Go(func() {
			if report("flood") == http.StatusTooManyRequests {
				refused.Done()
			}
		})
	}
	refused.Wait() // all but ten were answered, and those ten hang
	if code := report("train"); code != http.StatusOK {
		t.Errorf("another job's report: %d", code)
	}
	if n := written.Load(); n != 10 || w.status("train") == nil {
		t.Errorf("before another job's report %d of the flood went on, want 10", n)
	}
	close(stuck)
	flood.Wait()
}

// TestTokenReviewsAreLimited floods with tokens that are not what they claim to be.
func TestTokenReviewsAreLimited(t *testing.T) {
	for name, test := range map[string]struct {
		job  func(i int) string
		most int64
	}{
		"for one job":   {job: func(int) string { return "train" }, most: 20 + 2*60},
		"for many jobs": {job: func(i int) string { return fmt.Sprintf("job-%d", i) }, most: 100 + 20*60},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(family("train"), family("other")...)...)
			for i := range 6000 {
				w.clock.SetTime(start().Add(time.Duration(i) * 10 * time.Millisecond))
				if code, _ := w.post(test.job(i), token("gone", test.job(i)), progress(1)); code != 403 && code != 429 {
					t.Fatalf("request %d: %d", i, code)
				}
			}
			if n := w.reviews.Load(); n > test.most || n < test.most*9/10 {
				t.Errorf("%d TokenReviews, want nearly %d", n, test.most)
			}
		})
	}

	// A flood for one job leaves room for another job's pod, even from the same address.
	w := newWorld(t, append(family("train"), family("other")...)...)
	for range 1000 {
		w.post("train", token("gone", "train"), progress(1))
	}
	if code, body := w.post("other", token("other-pod", "other"), progress(1)); code != http.StatusOK {
		t.Errorf("another job's pod: %d %s", code, body)
	}
}
