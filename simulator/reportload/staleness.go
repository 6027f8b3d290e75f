package reportload

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// SentMetric is the metric that says when a report was sent, in milliseconds since 1970: times of reports are to the second only.
const SentMetric = "sent_unix_milliseconds"

// Shown is what the TrainJobs show. It is safe for use by many.
type Shown struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// sent is when the report was sent that each job shows; first and accepted are when the first and the newest report were sent that were
	// accepted.
	sent, first, accepted map[string]time.Time
	// versions are the latest that were seen of jobs.
	versions          map[string]string
	backwards, writes int
}

// NewShown watches nothing before Follow.
func NewShown(c clock.PassiveClock) *Shown {
	return &Shown{
		clock: c, sent: map[string]time.Time{}, first: map[string]time.Time{}, accepted: map[string]time.Time{},
		versions: map[string]string{},
	}
}

// Follow watches the TrainJobs of a namespace until ctx ends. An API server ends watches that do not keep up, as under load this one may; the
// next one goes on where it ended, because to begin with all that exists is a load of its own.
func (s *Shown) Follow(ctx context.Context, client dynamic.Interface, namespace string) error {
	const pause = 100 * time.Millisecond
	jobs := client.Resource(TrainJobs()).Namespace(namespace)
	version := ""
	err := wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		var err error
		version, err = s.watch(ctx, jobs, version)
		return false, err
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it has followed for as long as it was to
	}
	return err //nolint:wrapcheck // it is watch's
}

// watch takes over what TrainJobs show until the watch ends, and returns from which version the next one goes on. Without a version, a
// watch begins with what exists.
func (s *Shown) watch(ctx context.Context, jobs dynamic.ResourceInterface, version string) (next string, err error) {
	watching, err := jobs.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
	switch {
	case err == nil:
	case mayGoOn(err):
		return version, nil
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return "", nil
	default:
		return "", fmt.Errorf("watching TrainJobs: %w", err)
	}
	defer watching.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case event, ok := <-watching.ResultChan():
			if !ok {
				return version, nil
			}
			if event.Type == watch.Error {
				return s.ended(event, version)
			}
			if job, is := event.Object.(*unstructured.Unstructured); is {
				version = job.GetResourceVersion()
				s.see(job)
			}
		}
	}
}

// ended is from which version to go on after a watch that ended with an error.
func (*Shown) ended(event watch.Event, version string) (next string, err error) {
	err = apierrors.FromObject(event.Object)
	switch {
	case mayGoOn(err):
		return version, nil
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return "", nil
	default:
		return "", fmt.Errorf("watching TrainJobs: the watch ended: %w", err)
	}
}

// mayGoOn reports whether an API server that is slow may answer the same question later. Its cache can be behind the version that the last
// watch saw.
func mayGoOn(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// Refresh takes over what all TrainJobs of a namespace show by now, which a watch may tell late.
func (s *Shown) Refresh(ctx context.Context, client dynamic.Interface, namespace string) error {
	const page = 500
	options := metav1.ListOptions{Limit: page}
	for {
		jobs, err := client.Resource(TrainJobs()).Namespace(namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing TrainJobs: %w", err)
		}
		for i := range jobs.Items {
			s.see(&jobs.Items[i])
		}
		if options.Continue = jobs.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// see takes over what a job shows in one of its versions, unless a later one was seen.
func (s *Shown) see(job *unstructured.Unstructured) {
	if !s.isNews(job.GetName(), job.GetResourceVersion()) {
		return
	}
	metrics, _, _ := unstructured.NestedSlice(job.Object, "status", "trainerStatus", "metrics")
	for _, item := range metrics {
		metric, _ := item.(map[string]any)
		if metric["name"] != SentMetric {
			continue
		}
		text, _ := metric["value"].(string)
		milliseconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return
		}
		s.show(job.GetName(), time.UnixMilli(milliseconds))
	}
}

func (s *Shown) isNews(job, version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order, err := resourceversion.CompareResourceVersion(version, s.versions[job]); err == nil && order <= 0 {
		return false
	}
	s.versions[job] = version
	return true
}

func (s *Shown) show(job string, sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch before := s.sent[job]; {
	case before.Equal(sent):
		return
	case before.After(sent):
		s.backwards++
	}
	s.writes++
	s.sent[job] = sent
}

// Accept takes note of a report that was accepted.
func (s *Shown) Accept(job int, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := Name(job)
	if _, ok := s.first[name]; !ok {
		s.first[name] = at
	}
	s.accepted[name] = at
}

// Ages returns how old the report is by now that each job shows, of all jobs of which one was accepted. A job that has shown none yet waits
// since its first one.
func (s *Shown) Ages() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	ages := make([]time.Duration, 0, len(s.accepted))
	for job, since := range s.first {
		if sent, ok := s.sent[job]; ok {
			since = sent
		}
		ages = append(ages, now.Sub(since))
	}
	return ages
}

// Counts are what the TrainJobs have shown so far.
type Counts struct {
	// Accepted is how many jobs had a report accepted, and Behind how many of them do not show their newest one.
	Accepted, Behind int
	// Writes is how many reports were shown, and Backwards how many of them were older than the one that they replaced.
	Writes, Backwards int
}

// Counts counts what the TrainJobs have shown so far.
func (s *Shown) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	behind := 0
	for job, at := range s.accepted {
		if s.sent[job].Before(at.Truncate(time.Millisecond)) {
			behind++
		}
	}
	return Counts{Accepted: len(s.accepted), Behind: behind, Writes: s.writes, Backwards: s.backwards}
}
