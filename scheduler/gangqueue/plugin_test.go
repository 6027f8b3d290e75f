package gangqueue_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestGangQueue_GangEntersWhole(t *testing.T) {
	const size = 5
	for last := range size + 1 {
		t.Run(fmt.Sprintf("the PodGroup comes after %d members", last), func(t *testing.T) {
			s := newScheduler()
			plugin, _ := newPlugin(t, s)
			q := newQueue(t, plugin, s)
			for i := range size {
				if i == last {
					q.group(nil, group("g", size))
				}
				if q.active["g"] != 0 {
					t.Fatalf("the gang entered with %d members", q.active["g"])
				}
				q.pod(member("g", i))
			}
			if last == size {
				q.group(nil, group("g", size))
			}
			if q.active["g"] != size || q.judged != 1 {
				t.Errorf(
					"the gang entered with %d members after %d judgements, want %d after 1",
					q.active["g"],
					q.judged,
					size,
				)
			}
		})
	}
}

func TestGangQueue_LowerMinCountOpensTheGang(t *testing.T) {
	s := newScheduler()
	plugin, _ := newPlugin(t, s)
	q := newQueue(t, plugin, s)
	old := group("g", 3)
	q.group(nil, old)
	q.pod(member("g", 0))
	q.pod(member("g", 1))
	if q.active["g"] != 0 {
		t.Fatal("an incomplete gang entered")
	}
	q.group(old, group("g", 2))
	if q.active["g"] != 2 {
		t.Error("the gang did not enter when it became complete")
	}
}

func TestGangQueue_RecreatedPodGroupIsClosed(t *testing.T) {
	s := newScheduler()
	plugin, _ := newPlugin(t, s)
	q := newQueue(t, plugin, s)
	q.group(nil, group("g", 1))
	q.pod(member("g", 0))
	if status := plugin.PreEnqueue(t.Context(), member("g", 0)); !status.IsSuccess() {
		t.Fatalf("the open gang is gated: %v", status)
	}
	again := group("g", 1)
	again.UID = "another"
	s.addGroup(again)
	if plugin.PreEnqueue(t.Context(), member("g", 0)).IsSuccess() {
		t.Error("a PodGroup is open before its event")
	}
}

func TestGangQueue_OtherPodsPass(t *testing.T) {
	s := newScheduler()
	plugin, _ := newPlugin(t, s)
	basic := group("basic", 1)
	basic.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{
		Basic: &schedulingv1beta1.BasicSchedulingPolicy{},
	}
	s.addGroup(basic)
	for _, p := range []*corev1.Pod{{}, member("basic", 0)} {
		if status := plugin.PreEnqueue(t.Context(), p); !status.IsSuccess() {
			t.Errorf("pod %q is gated: %v", p.Name, status)
		}
	}
	if plugin.PreEnqueue(t.Context(), member("unknown", 0)).IsSuccess() {
		t.Error("a member of an unknown PodGroup passes")
	}
}

// After a restart bound members raise no event of ours: only the delayed look opens the gang.
func TestGangQueue_BoundMemberCompletesTheGang(t *testing.T) {
	s := newScheduler()
	plugin, clock := newPlugin(t, s)
	q := newQueue(t, plugin, s)
	q.group(nil, group("g", 2))
	q.pod(member("g", 0))
	bound := member("g", 1)
	bound.Spec.NodeName = "node"
	plugin.Recheck(bound) // ours sees it before the scheduler's own handler
	plugin.Recheck(bound)
	s.addMember(bound)
	clock.Step(2 * time.Second)
	for range 100 {
		if s.mu.Lock(); len(s.activated) > 0 {
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.activated) != 1 || s.activated[0] != "g-0" {
		t.Errorf("activated %v, want the waiting member once", s.activated)
	}
}

// The scheduler's handlers for pods and PodGroups, ours and the queue run in goroutines of their own.
func TestGangQueue_ConcurrentEvents(t *testing.T) {
	const gangs, size = 20, 50
	s := newScheduler()
	clock := &besideClock{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	plugin := newPluginWith(t, s, clock)
	var q sync.Mutex // the queue's lock, under which the scheduler calls hints and PreEnqueue, and activates
	queues := make(map[string]*queue)
	for g := range gangs {
		queues[fmt.Sprint("g", g)] = newQueue(t, plugin, s)
	}
	s.moves = func(p *corev1.Pod) {
		q.Lock()
		defer q.Unlock()
		name := *p.Spec.SchedulingGroup.PodGroupName
		queues[name].enter(name)
	}
	var done sync.WaitGroup
	for name, queue := range queues {
		done.Go(func() {
			for i := range size {
				q.Lock()
				queue.pod(member(name, i))
				q.Unlock()
			}
		})
		done.Go(func() {
			q.Lock()
			defer q.Unlock()
			queue.group(nil, group(name, size))
		})
		done.Go(func() {
			bound := member(name, size)
			bound.Spec.NodeName = "node"
			plugin.Recheck(bound)
			clock.Step(time.Second)
		})
	}
	done.Wait()
	clock.running.Wait()
	for name, queue := range queues {
		if queue.active[name] < size-1 {
			t.Errorf("gang %s entered with %d of %d members", name, queue.active[name], size)
		}
	}
}
