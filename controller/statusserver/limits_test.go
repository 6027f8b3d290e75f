package statusserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// TestLimits_ReportsOfOneJob floods with 100 reports a second for a minute of virtual time.
func TestLimits_ReportsOfOneJob(t *testing.T) {
	w := newFixture(t, append(family("flood"), family("train")...)...)
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

// TestLimits_FloodDelaysNoOtherJob sends 300 reports at once over the network, to an API server that takes none of that
// job's any more: reports of another job are written meanwhile, and of the flood one report is under way.
func TestLimits_FloodDelaysNoOtherJob(t *testing.T) {
	w := newFixture(t, append(family("flood"), family("train")...)...)
	var written tally
	stuck := make(chan struct{})
	defer close(stuck)
	w.writing = func(_ context.Context, job string) error {
		written.Add(job)
		if job == "flood" {
			<-stuck
		}
		return nil
	}
	client, base := w.serve()
	// The ten that are accepted are answered too, although none of them can be written. One whose answer is lost is
	// refused when it is sent again.
	codes := w.flood(client, base, 300)
	accepted, refused, lost := codes[http.StatusOK], codes[http.StatusTooManyRequests], codes[0]
	if accepted > 10 || accepted < 10-lost || accepted+refused != 300 {
		t.Errorf("of the flood %v, want 10 answered with 200 and 290 with 429", codes)
	}
	if code := w.report(client, base, "train"); code != http.StatusOK {
		t.Errorf("another job's report: %d", code)
	}
	written.Wait(t, "train")
	if n := written.Count("flood"); n != 1 {
		t.Errorf("%d writes of the flood are under way, want 1", n)
	}
}

// flood sends reports of one job at once over the network, and counts the answers by code; 0 for none. A report without
// an answer is sent again: on a stalled machine, handshakes exceed the server's timeout.
func (w *fixture) flood(with *http.Client, base string, reports int) map[int]int {
	var senders sync.WaitGroup
	var mu sync.Mutex
	codes := make(map[int]int)
	for range reports {
		senders.Go(func() {
			for range 10 {
				code := w.report(with, base, "flood")
				mu.Lock()
				codes[code]++
				mu.Unlock()
				if code != 0 {
					return
				}
			}
		})
	}
	senders.Wait()
	return codes
}

// report reports over the network and returns the code; 0 for no answer.
func (w *fixture) report(with *http.Client, base, job string) int {
	key := types.NamespacedName{Namespace: namespace, Name: job}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, base+plan.StatusPath(key),
		strings.NewReader(progress(1)))
	if err != nil {
		w.t.Error(err)
		return 0
	}
	request.Header.Set("Authorization", "bearer  "+token(job+"-pod", job))
	response, err := with.Do(request)
	if err != nil {
		w.t.Log(err)
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestLimits_TokenReviews floods the server with forged tokens.
func TestLimits_TokenReviews(t *testing.T) {
	for name, test := range map[string]struct {
		job  func(i int) string
		most int64
	}{
		"for one job":   {job: func(int) string { return "train" }, most: 20 + 2*60},
		"for many jobs": {job: func(i int) string { return fmt.Sprintf("job-%d", i) }, most: 100 + 20*60},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, append(family("train"), family("other")...)...)
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
	w := newFixture(t, append(family("train"), family("other")...)...)
	for range 1000 {
		w.post("train", token("gone", "train"), progress(1))
	}
	if code, body := w.post("other", token("other-pod", "other"), progress(1)); code != http.StatusOK {
		t.Errorf("another job's pod: %d %s", code, body)
	}
}

// After a restart all pods prove their identity at once, with a slow API server. A bounded number of proofs is under
// way and the other senders are asked to retry, so that reports of known pods are written meanwhile; no pod is refused
// for good.
func TestProofs_UnderWayAreBounded(t *testing.T) {
	const jobs, most = 60, 32
	var objects []client.Object
	for i := range jobs {
		objects = append(objects, family(fmt.Sprintf("new-%d", i))...)
	}
	w := newFixture(t, append(objects, family("train")...)...)
	if code, body := w.post("train", token("train-pod", "train"), progress(1)); code != http.StatusOK {
		t.Fatalf("the first report: %d %s", code, body)
	}
	release := make(chan struct{})
	w.reviewing = func(context.Context) error { <-release; return nil }
	reviewed := w.reviews.Load()
	codes := make(chan int, jobs)
	report := func(i int) {
		name := fmt.Sprintf("new-%d", i)
		code, _ := w.post(name, token(name+"-pod", name), progress(1))
		codes <- code
	}
	for i := range jobs {
		go report(i)
	}
	for range jobs - most {
		if code := <-codes; code != http.StatusTooManyRequests {
			t.Errorf("answer %d while %d proofs are under way, want 429", code, most)
		}
	}
	if under := w.reviewsSince(reviewed, most); under != most {
		t.Errorf("%d proofs are under way, want %d", under, most)
	}
	w.clock.SetTime(start().Add(statusserver.Spacing))
	if code, body := w.post("train", token("train-pod", "train"), progress(100)); code != http.StatusOK {
		t.Errorf("a known pod's report: %d %s", code, body)
	}
	if status := w.status("train"); *status.ProgressPercentage != 100 {
		t.Errorf("a known pod's job stands at %d per cent, want 100", *status.ProgressPercentage)
	}
	close(release)
	for range most {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("answer %d to a proof that was under way, want 200", code)
		}
	}
	w.clock.SetTime(start().Add(2 * statusserver.Spacing))
	for i := range jobs {
		if report(i); <-codes != http.StatusOK {
			t.Errorf("job %d is refused when it comes back", i)
		}
	}
}

// reviewsSince returns the number of TokenReviews since an earlier count, once there were enough or 10 s have passed.
func (w *fixture) reviewsSince(earlier, enough int64) int64 {
	for range 1000 {
		if w.reviews.Load()-earlier >= enough {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return w.reviews.Load() - earlier
}

// Renewals are bounded too: the proofs of all pods are not renewed at once by a slow API server.
func TestRenewals_UnderWayAreBounded(t *testing.T) {
	const jobs, most = 30, 16
	var objects []client.Object
	for i := range jobs {
		objects = append(objects, family(fmt.Sprintf("known-%d", i))...)
	}
	w := newFixture(t, objects...)
	reportAll := func() {
		for i := range jobs {
			name := fmt.Sprintf("known-%d", i)
			if code, body := w.post(name, token(name+"-pod", name), progress(1)); code != http.StatusOK {
				t.Errorf("job %d: %d %s", i, code, body)
			}
		}
	}
	reportAll()
	proven, release := w.reviews.Load(), make(chan struct{})
	w.reviewing = func(context.Context) error { <-release; return nil }
	w.clock.SetTime(start().Add(statusserver.Believed))
	reportAll()
	if under := w.reviewsSince(proven, most); under != most {
		t.Errorf("%d renewals are under way, want %d", under, most)
	}
	close(release)
	w.server.Settle()
	for range 2 { // those without a seat retry, and all are renewed in the end
		reportAll()
		w.server.Settle()
	}
	if renewed := w.reviews.Load() - proven; renewed != jobs {
		t.Errorf("%d renewals, want one for each of %d jobs", renewed, jobs)
	}
}
