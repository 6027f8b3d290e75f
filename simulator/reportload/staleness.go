package reportload

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	backwards             int
	writes                int
}

// NewShown watches nothing before Follow.
func NewShown(c clock.PassiveClock) *Shown {
	return &Shown{
		clock: c, sent: map[string]time.Time{}, first: map[string]time.Time{}, accepted: map[string]time.Time{},
	}
}

// Follow watches the TrainJobs of a namespace until ctx ends. An API server ends watches that do not keep up, as under load this one may.
func (s *Shown) Follow(ctx context.Context, client dynamic.Interface, namespace string) error {
	jobs := client.Resource(TrainJobs()).Namespace(namespace)
	for ctx.Err() == nil {
		if err := s.watch(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

// watch takes over what TrainJobs show until the watch ends.
func (s *Shown) watch(ctx context.Context, jobs dynamic.ResourceInterface) error {
	// Without a version, the watch begins with what exists.
	watching, err := jobs.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("watching TrainJobs: %w", err)
	}
	defer watching.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-watching.ResultChan():
			if !ok {
				return nil
			}
			if event.Type == watch.Error {
				return fmt.Errorf("watching TrainJobs: the watch ended: %v", event.Object)
			}
			if job, is := event.Object.(*unstructured.Unstructured); is {
				s.see(job)
			}
		}
	}
}

// see takes over what a job shows by now.
func (s *Shown) see(job *unstructured.Unstructured) {
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
