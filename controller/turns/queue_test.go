package turns_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-project/lockstep/controller/turns"
)

const low = -100

func request(text string) reconcile.Request {
	namespace, name, _ := strings.Cut(text, "/")
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func newQueue(t *testing.T) *turns.Queue {
	t.Helper()
	queue := turns.New(
		"",
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute),
	)
	t.Cleanup(queue.ShutDown)
	return queue
}

// add adds requests, those with a text that starts with a "-" at the low priority.
func add(queue *turns.Queue, texts ...string) {
	for _, text := range texts {
		var options priorityqueue.AddOpts
		if rest, ok := strings.CutPrefix(text, "-"); ok {
			text, options.Priority = rest, new(low)
		}
		queue.AddWithOpts(options, request(text))
	}
}

// served takes all that is ready, in order.
func served(queue *turns.Queue) string {
	var texts []string
	for queue.Len() > 0 {
		taken, priority, _ := queue.GetWithPriority()
		text := taken.String()
		if priority == low {
			text = "-" + text
		}
		texts = append(texts, text)
		queue.Forget(taken)
		queue.Done(taken)
	}
	return strings.Join(texts, " ")
}

func TestQueue_Order(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		added []string
		want  string
	}{
		"one namespace is served as it came":           {[]string{"a/3", "a/1", "a/2"}, "a/3 a/1 a/2"},
		"namespaces take turns":                        {[]string{"a/1", "a/2", "a/3", "b/1", "b/2", "c/1"}, "a/1 b/1 c/1 a/2 b/2 a/3"},
		"a request stands once":                        {[]string{"a/1", "a/2", "a/1"}, "a/1 a/2"},
		"what a restart brings up waits":               {[]string{"-a/1", "-b/1", "a/2", "b/2"}, "a/2 b/2 -a/1 -b/1"},
		"what changes meanwhile moves up":              {[]string{"-a/1", "-a/2", "a/3", "a/2"}, "a/3 a/2 -a/1"},
		"what moves up leaves its namespace's turn":    {[]string{"-a/1", "-b/1", "b/1"}, "b/1 -a/1"},
		"what stands high is not moved down":           {[]string{"a/1", "-a/1", "a/2"}, "a/1 a/2"},
		"one of many is served second, whoever is it":  {append(many("a", 50), "b/1"), "a/0 b/1 " + strings.Join(many("a", 50)[1:], " ")},
		"objects of the cluster are a namespace's too": {[]string{"/x", "/y", "a/1"}, "/x a/1 /y"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t)
			add(queue, tc.added...)
			if got := served(queue); got != tc.want {
				t.Errorf("%v are served as\n%s, want\n%s", tc.added, got, tc.want)
			}
		})
	}
}

func many(namespace string, count int) []string {
	var texts []string
	for i := range count {
		texts = append(texts, fmt.Sprintf("%s/%d", namespace, i))
	}
	return texts
}

func TestQueue_DelayedRequestsRetainPriority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue := newQueue(t)
		queue.AddWithOpts(priorityqueue.AddOpts{After: time.Minute, Priority: new(low)}, request("a/1"))
		queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: new(low)}, request("b/1"))
		queue.AddAfter(request("c/1"), time.Minute)
		queue.AddRateLimited(request("d/1"))
		if got := served(queue); got != "" {
			t.Errorf("served at once: %s", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := served(queue); got != "d/1 -b/1" {
			t.Errorf("served after the first retry: %s, want d/1 -b/1", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := served(queue); got != "c/1 -a/1" {
			t.Errorf("served after a minute: %s, want c/1 -a/1", got)
		}
	})
}

// A request that is added while it is handled is handled again, in its turn and not by two workers at once.
func TestQueue_ChangedRequestIsHandledAgain(t *testing.T) {
	t.Parallel()
	queue := newQueue(t)
	add(queue, "a/1", "a/2")
	first, _, _ := queue.GetWithPriority()
	add(queue, "a/1", "-b/1")
	second, _, _ := queue.GetWithPriority()
	queue.Done(first)
	queue.Done(second)
	if second != request("a/2") {
		t.Errorf("%s is served while it is being handled", second)
	}
	if got := served(queue); got != "a/1 -b/1" {
		t.Errorf("served afterwards: %s, want a/1 -b/1", got)
	}
}

// For any requests, in any order: everything is served once, the higher priority first, and no namespace has its next
// turn before all others that wait at its priority had theirs.
func TestQueue_NamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		chance := rand.New(rand.NewPCG(seed, 1))
		queue := newQueue(t)
		waiting := map[reconcile.Request]int{}
		for range 1 + chance.IntN(60) {
			added := request(fmt.Sprintf("%c/%d", 'a'+chance.IntN(4), chance.IntN(12)))
			priority := low * chance.IntN(2)
			queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, added)
			if before, ok := waiting[added]; !ok || priority > before {
				waiting[added] = priority
			}
		}
		turns, last := map[string]int{}, 0
		for turn := 1; queue.Len() > 0; turn++ {
			taken, priority, _ := queue.GetWithPriority()
			queue.Done(taken)
			if want, ok := waiting[taken]; !ok || want != priority || priority > last {
				t.Fatalf(
					"seed %d: %s is served at %d after one at %d, want it at %d",
					seed,
					taken,
					priority,
					last,
					want,
				)
			}
			delete(waiting, taken)
			if priority < last {
				last, turns = priority, map[string]int{}
			}
			for other, at := range waiting {
				if at == priority && turns[other.Namespace] < turns[taken.Namespace] {
					t.Fatalf("seed %d: %s has its next turn before %s", seed, taken.Namespace, other)
				}
			}
			turns[taken.Namespace] = turn
		}
		if len(waiting) > 0 {
			t.Fatalf("seed %d: never served: %v", seed, waiting)
		}
	}
}
