package statusserver_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// Reports accepted before the server ends are written, also those that are not due, and the server ends.
func TestServer_EndWritesWhatIsHeld(t *testing.T) {
	w := newFixture(t, append(family("train"), family("other")...)...)
	var written tally
	var refuse atomic.Bool
	first, release := make(chan struct{}), make(chan struct{})
	w.writing = func(_ context.Context, job string) error {
		if refuse.CompareAndSwap(true, false) {
			return errors.New("no answer")
		}
		written.Add(job)
		if job == "train" && written.Count(job) == 1 {
			close(first)
			<-release
		}
		return nil
	}
	stop := run(t, w.server)
	for _, job := range []string{"train", "other"} {
		if code, body := w.post(job, token(job+"-pod", job), progress(6)); code != http.StatusOK {
			t.Fatalf("answer %d %s", code, body)
		}
	}
	<-first
	written.Wait(t, "other")
	for _, job := range []string{"train", "other"} {
		w.post(job, token(job+"-pod", job), progress(7)) // would wait for half a minute
	}
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	refuse.Store(true) // the API server has a bad moment
	w.server.Flush(t.Context())
	for _, job := range []string{"train", "other"} {
		if status := w.status(job); *status.ProgressPercentage != 7 {
			t.Errorf("%s is at %d per cent after the end, want 7", job, *status.ProgressPercentage)
		}
	}
}

// A replica that loses its lease flushes while the server still ends. It waits for writes in progress, and counts
// reports that cannot be written in time.
func TestServer_FlushWaitsForWhatIsBeingWritten(t *testing.T) {
	for name, test := range map[string]struct {
		answers bool // whether the API server answers before Flush has to end
		left    string
	}{
		"an API server that answers":          {answers: true},
		"an API server that answers too late": {left: `"reports"=1`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, family("train")...)
			writing, release := make(chan struct{}), make(chan struct{})
			w.writing = func(context.Context, string) error {
				close(writing)
				<-release
				return nil
			}
			stop := run(t, w.server)
			if code, body := w.post("train", token("train-pod", "train"), progress(6)); code != http.StatusOK {
				t.Fatalf("answer %d %s", code, body)
			}
			<-writing
			ended, flushed := make(chan error, 1), make(chan struct{})
			go func() { ended <- stop() }()
			var said strings.Builder
			log := funcr.New(func(prefix, args string) { said.WriteString(prefix + args) }, funcr.Options{})
			ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), log))
			defer cancel()
			go func() {
				defer close(flushed)
				w.server.Flush(ctx)
			}()
			select {
			case <-flushed:
				t.Error("Flush returned while a report was being written")
			case <-time.After(500 * time.Millisecond):
			}
			if test.answers {
				close(release)
			} else {
				cancel()
			}
			<-flushed
			if test.answers != (said.String() == "") || !strings.Contains(said.String(), test.left) {
				t.Errorf("Flush said %q, want %q", said.String(), test.left)
			}
			if !test.answers {
				close(release)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if status := w.stands("train"); status == nil || *status.ProgressPercentage != 6 {
				t.Errorf("%+v stands in the end", status)
			}
		})
	}
}

// A request with a proof under way when the server ends is answered, and Flush writes its report. After five seconds
// the sender gets no acceptance, because the report is no longer written.
func TestServer_FlushWritesWhatIsAcceptedMeanwhile(t *testing.T) {
	for name, inTime := range map[string]bool{"in time": true, "too late": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, family("train")...)
			proving, release := make(chan struct{}), make(chan struct{})
			w.reviewing = func(context.Context) error {
				close(proving)
				<-release
				return nil
			}
			client, base, stop := w.listen()
			code := make(chan int, 1)
			go func() { code <- w.report(client, base, "train") }()
			<-proving
			ended, flushed := make(chan error, 1), make(chan struct{})
			go func() { ended <- stop() }()
			go func() {
				defer close(flushed)
				w.server.Flush(t.Context())
			}()
			if inTime {
				time.AfterFunc(500*time.Millisecond, func() { close(release) })
			}
			<-flushed
			if err := <-ended; (err == nil) != inTime {
				t.Errorf("the server ended with %v", err)
			}
			if !inTime {
				close(release)
			}
			status := w.stands("train")
			if answer := <-code; (answer == http.StatusOK) != inTime || (status != nil) != inTime {
				t.Errorf("answer %d, and %+v stands", answer, status)
			}
		})
	}
}

// At the end the cache no longer follows the cluster. A later write of another client to the TrainJob conflicts with
// the cached version.
func TestServer_FlushDoesNotNeedTheCache(t *testing.T) {
	w := newFixture(t, family("train")...)
	options := w.options()
	options.Cached = &stale{Client: w.cluster}
	server := statusserver.New(options)
	if code := reportTo(t, server, w.clock.Now(), 1); code != http.StatusOK {
		t.Fatalf("answer %d", code)
	}
	var job trainerv1alpha1.TrainJob
	if err := w.cluster.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "train"}, &job); err != nil {
		t.Fatal(err)
	}
	job.Labels = map[string]string{"changed": "since"}
	if err := w.cluster.Update(t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	server.Flush(t.Context())
	if status := w.stands("train"); status == nil || status.Metrics[0].Value != "1" {
		t.Errorf("%+v stands after the end", status)
	}
}

// The cache shows a job that was deleted and replaced by another one of its name. The report of the first one's pod is
// not written into the second.
func TestReports_OfAJobThatWasReplacedUnseen(t *testing.T) {
	w := newFixture(t, family("train")...)
	options := w.options()
	options.Cached = &stale{Client: w.cluster}
	server := statusserver.New(options)
	if code := reportTo(t, server, w.clock.Now(), 1); code != http.StatusOK {
		t.Fatalf("answer %d", code)
	}
	job := family("train")[0]
	if err := w.cluster.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	job.SetUID("second")
	job.SetResourceVersion("")
	if err := w.cluster.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	writes := 0
	w.writing = func(context.Context, string) error {
		writes++
		return nil
	}
	server.WriteDue(t.Context())
	if writes != 1 {
		t.Errorf("%d writes were tried, want one that is in conflict", writes)
	}
	server.Flush(t.Context())
	if status := w.stands("train"); status != nil {
		t.Errorf("the second job shows %+v", status)
	}
}

// stale is a cache that shows the first version of each TrainJob.
type stale struct {
	client.Client

	first *trainerv1alpha1.TrainJob
}

func (s *stale) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	job, ok := object.(*trainerv1alpha1.TrainJob)
	if !ok {
		return s.Client.Get(ctx, key, object, opts...)
	}
	if s.first == nil {
		if err := s.Client.Get(ctx, key, job, opts...); err != nil {
			return err
		}
		s.first = job.DeepCopy()
	}
	s.first.DeepCopyInto(job)
	return nil
}

// An API server without answers delays the end by the permitted time, and no longer.
func TestServer_FlushIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, family("train")...)
		w.post("train", token("train-pod", "train"), progress(6))
		w.writing = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		w.server.Flush(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v, want 1 s", took)
		}
	})
}

// A write to which the API server does not answer is given up after a while and repeated.
func TestServer_AWriteWithoutAnAnswerIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, family("train")...)
		w.post("train", token("train-pod", "train"), progress(6))
		writes := 0
		w.writing = func(ctx context.Context, _ string) error {
			if writes++; writes > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		w.server.Flush(ctx)
		if took := time.Since(began); took > 15*time.Second || w.stands("train") == nil {
			t.Errorf("after %v and %d writes %+v stands", took, writes, w.stands("train"))
		}
	})
}
