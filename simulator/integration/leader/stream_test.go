package leader_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// apart is the time between two jobs.
	apart = 200 * time.Millisecond
	// patience is the time that a job may wait before the test ends without a result.
	patience = time.Minute
)

// stream is a row of jobs, one after the other, and when each of them was created and had its JobSet.
type stream struct {
	*replicas

	namespace string

	mu            sync.Mutex
	created, made map[string]time.Time
}

// waits are the longest times for which jobs waited for their JobSets: of all jobs, and of those before anything
// happened to the leader.
type waits struct{ all, before time.Duration }

// String implements fmt.Stringer.
func (w waits) String() string {
	return fmt.Sprintf("%.2f s, and %.2f s before it", w.all.Seconds(), w.before.Seconds())
}

// longestWait calls do while jobs are created, five each second, and returns the longest waits.
func (r *replicas) longestWait(name string, do func()) waits {
	r.t.Helper()
	s := &stream{replicas: r, namespace: name, created: map[string]time.Time{}, made: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	s.open(ctx)
	var creating sync.WaitGroup
	flowing, dry := context.WithCancel(ctx)
	creating.Go(func() { s.create(flowing) })
	s.until("JobSets before anything happens", func() bool { return len(s.made) > 10 })
	before := s.longest()
	do()
	done := time.Now()
	s.until("the JobSet of a job that was created afterwards", func() bool {
		for job := range s.made {
			if s.created[job].After(done.Add(time.Second)) {
				return true
			}
		}
		return false
	})
	dry()
	creating.Wait()
	s.until("all JobSets", func() bool { return len(s.made) == len(s.created) })
	return waits{s.longest(), before}
}

// longest returns the longest wait of the jobs that have their JobSets.
func (s *stream) longest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := time.Duration(0)
	for job, made := range s.made {
		longest = max(longest, made.Sub(s.created[job]))
	}
	return longest
}

// open creates the namespace and notes the JobSets that appear in it.
func (s *stream) open(ctx context.Context) {
	s.t.Helper()
	_, err := shared.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	jobSets := schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
	watching, err := shared.Dynamic.Resource(jobSets).Namespace(s.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		for event := range watching.ResultChan() {
			if object, ok := event.Object.(metav1.Object); ok && event.Type == watch.Added {
				s.mu.Lock()
				s.made[object.GetName()] = time.Now()
				s.mu.Unlock()
			}
		}
	}()
}

// create creates suspended jobs until ctx ends. One that is refused, because no webhook answers, waits for its JobSet
// from then on.
func (s *stream) create(ctx context.Context) {
	jobs := shared.Dynamic.Resource(schema.GroupVersionResource{
		Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs",
	}).Namespace(s.namespace)
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("job-%03d", i)
		s.mu.Lock()
		s.created[name] = time.Now()
		s.mu.Unlock()
		err := wait.PollUntilContextTimeout(context.WithoutCancel(ctx), apart/4, patience, true,
			func(ctx context.Context) (bool, error) {
				_, err := jobs.Create(ctx, suspendedJob(name), metav1.CreateOptions{})
				if err != nil {
					s.t.Logf("creating %s/%s: %v", s.namespace, name, err)
				}
				return err == nil, nil
			})
		if err != nil {
			s.t.Errorf("creating %s/%s: %v", s.namespace, name, err)
			return
		}
		select {
		case <-time.After(apart):
		case <-ctx.Done():
		}
	}
}

func suspendedJob(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"suspend": true, "runtimeRef": map[string]any{"name": "torch-distributed"}},
	}}
}

// until waits for something of the stream.
func (s *stream) until(what string, holds func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 20*time.Millisecond, patience, true,
		func(context.Context) (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return holds(), nil
		})
	if err != nil {
		s.t.Fatalf("%s: %s did not come: %v", s.namespace, what, err)
	}
}
