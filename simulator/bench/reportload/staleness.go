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

// SentMetric is the metric with the sending time of a report, in milliseconds since 1970: times of reports are to the
// second only.
const SentMetric = "sent_unix_milliseconds"

// Shown holds the reports that the TrainJobs show. It is safe for use by many.
type Shown struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// sent is the sending time of the report that each job shows; first and accepted are those of its first and its
	// newest accepted report.
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

// Follow watches the TrainJobs of a namespace until ctx ends. An API server ends watches that do not keep up, as this
// one may not under load. The next watch resumes at the last resource version, because listing all objects again is a
// load of its own.
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

// watch records the status of TrainJobs until the watch ends, and returns the resource version at which the next one
// resumes. Without a version, a watch begins with the existing objects.
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

// ended returns the version at which to resume after a watch that ended with an error.
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

// mayGoOn reports whether an API server that is slow may answer the same question later. Its cache can be behind the
// version that the last watch saw.
func mayGoOn(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// Refresh lists all TrainJobs of a namespace and records their status, which a watch may deliver late.
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

// see records the status of a job in one of its versions, unless a later one was seen.
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

// Ages returns the age of the report that each job shows, of all jobs with an accepted one. A job that has shown none
// yet waits since its first one.
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

// Counts count the reports that the TrainJobs have shown so far.
type Counts struct {
	// Accepted is the number of jobs with an accepted report, and Behind the number of them that do not show their
	// newest one.
	Accepted, Behind int
	// Writes is the number of reports that were shown, and Backwards the number of them that were older than the one
	// that they replaced.
	Writes, Backwards int
}

// Counts returns the totals of the reports seen in TrainJobs so far.
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
