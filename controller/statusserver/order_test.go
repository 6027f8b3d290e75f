package statusserver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// behind is a cache that shows TrainJobs as they were some reads ago.
type behind struct {
	client.Client

	chance *rand.Rand
	seen   []trainerv1alpha1.TrainJob
}

func (b *behind) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	job, ok := object.(*trainerv1alpha1.TrainJob)
	if !ok {
		return b.Client.Get(ctx, key, object, opts...)
	}
	if err := b.Client.Get(ctx, key, job, opts...); err != nil {
		return err
	}
	b.seen = append(b.seen, *job.DeepCopy())
	const most = 3
	b.seen = b.seen[max(0, len(b.seen)-1-b.chance.IntN(most)):] // versions only increase
	b.seen[0].DeepCopyInto(job)
	return nil
}

// Reports of one job reach three replicas in any order, each with a cache that is behind. The standing report never
// gets older, and the last report stands in the end.
func TestReports_OverReplicasNeverGoBack(t *testing.T) {
	for seed := range uint64(40) {
		chance := rand.New(rand.NewPCG(seed, 0))
		w := newFixture(t, family("train")...)
		replicas := []*statusserver.Server{w.server}
		for range 2 {
			options := w.options()
			options.Cached, options.Salt = &behind{Client: w.cluster, chance: chance}, strconv.Itoa(chance.Int())
			replicas = append(replicas, statusserver.New(options))
		}
		var last time.Time
		writes := 0
		check := func() {
			if status := w.stands("train"); status != nil {
				if status.LastUpdatedTime.Time.Before(last) {
					t.Fatalf("seed %d: after %v stands %v", seed, last, status.LastUpdatedTime.Time)
				}
				if !status.LastUpdatedTime.Time.Equal(last) {
					writes++
				}
				last = status.LastUpdatedTime.Time
			}
		}
		const reports = 60
		for i := range reports {
			w.clock.SetTime(start().Add(time.Duration(i) * 5 * time.Second))
			late := time.Duration(chance.IntN(3)*7) * time.Second
			code := reportTo(t, replicas[chance.IntN(len(replicas))], w.clock.Now().Add(-late), i)
			if code != http.StatusOK {
				t.Fatalf("seed %d: report %d: %d", seed, i, code)
			}
			for _, replica := range replicas {
				replica.WriteDue(t.Context())
				check()
			}
		}
		newest := w.clock.Now()
		reportTo(t, replicas[0], newest, reports)
		for range 70 { // another replica may write an older one first
			w.clock.SetTime(w.clock.Now().Add(time.Second))
			for _, replica := range replicas {
				replica.WriteDue(t.Context())
				check()
			}
		}
		if !last.Equal(newest) {
			t.Fatalf("seed %d: %v stands in the end, want %v", seed, last, newest)
		}
		// Alone, one replica writes eleven times in these six minutes. Three write no more than three times more: a
		// report that arrived late seems to have been written before it was.
		if writes > 11+3 {
			t.Errorf("seed %d: %d writes, want 14 at most", seed, writes)
		}
	}
}

// reportTo reports to a replica and returns the code.
func reportTo(t *testing.T, replica *statusserver.Server, at time.Time, loss int) int {
	t.Helper()
	body := fmt.Sprintf(`{"trainerStatus":{"metrics":[{"name":"loss","value":"%d"}],"lastUpdatedTime":%q}}`, loss,
		at.Format(time.RFC3339))
	key := types.NamespacedName{Namespace: namespace, Name: "train"}
	request := httptest.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		plan.StatusPath(key),
		strings.NewReader(body),
	)
	request.Header.Set("Authorization", "Bearer "+token("train-pod", "train"))
	response := httptest.NewRecorder()
	replica.Handler().ServeHTTP(response, request)
	replica.Settle()
	return response.Code
}

// A job that reports every five seconds for five minutes is written each half minute, the newest report only; when its
// training is complete, that is written at once.
func TestReports_AreWrittenEachHalfMinute(t *testing.T) {
	w := newFixture(t, family("train")...)
	var written tally
	w.writing = func(_ context.Context, job string) error {
		written.Add(job)
		return nil
	}
	for i := range 60 {
		if code := reportTo(t, w.server, w.clock.Now(), i); code != http.StatusOK {
			t.Fatalf("report %d: %d", i, code)
		}
		w.pass(0)
		if status := w.stands("train"); w.clock.Since(status.LastUpdatedTime.Time) > statusserver.Period {
			t.Errorf("after %d reports %v stands at %v", i, status.LastUpdatedTime, w.clock.Now())
		}
		w.pass(5 * time.Second)
	}
	if n := written.Count("train"); n < 10 || n > 13 {
		t.Errorf("%d writes in five minutes, want 11 or so", n)
	}
	before := written.Count("train")
	w.post("train", token("train-pod", "train"), strings.Replace(progress(100), "10:00:00", "10:05:00", 1))
	if status := w.status("train"); written.Count("train") != before+1 || *status.ProgressPercentage != 100 {
		t.Errorf("after %d more writes %+v stands, want 100 per cent at once", written.Count("train")-before, status)
	}

	// It does not report any more, and is forgotten.
	w.pass(4 * time.Minute)
	if jobs := w.server.ForgetIdle(); jobs != 1 {
		t.Errorf("%d jobs after four minutes, want 1", jobs)
	}
	w.pass(time.Minute)
	if jobs := w.server.ForgetIdle(); jobs != 0 {
		t.Errorf("%d jobs after five minutes, want 0", jobs)
	}
}

// A job that is deleted while a report of it waits takes it along; a job of the same name that is made then shows
// nothing of it.
func TestReports_OfADeletedJob(t *testing.T) {
	w := newFixture(t, family("train")...)
	w.post("train", token("train-pod", "train"), progress(40))
	w.pass(0)
	w.post("train", token("train-pod", "train"), progress(41))
	job := family("train")[0]
	if err := w.cluster.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if code, _ := w.post("train", token("train-pod", "train"), progress(42)); code != http.StatusNotFound {
		t.Errorf("a report of a job that is gone: %d, want 404", code)
	}
	job.SetUID("second")
	job.SetResourceVersion("")
	if err := w.cluster.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	w.pass(statusserver.Period)
	if status := w.status("train"); status != nil {
		t.Errorf("the second job shows %+v", status)
	}
	if jobs := w.server.ForgetIdle(); jobs != 0 {
		t.Errorf("%d jobs are remembered", jobs)
	}
}

// stands returns the status that the job shows; nothing more is written.
func (w *fixture) stands(job string) *trainerv1alpha1.TrainerStatus {
	w.t.Helper()
	var found trainerv1alpha1.TrainJob
	if err := w.cluster.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: job}, &found); err != nil {
		w.t.Fatal(err)
	}
	return found.Status.TrainerStatus
}
