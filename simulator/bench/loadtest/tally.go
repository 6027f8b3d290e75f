package loadtest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// tally counts objects that have reached a state, each once, and records the time at which there were enough.
type tally struct {
	clock  clock.PassiveClock
	wanted int

	mu   sync.Mutex
	seen map[string]bool
	at   time.Time
	done chan struct{}
}

func newTally(clk clock.PassiveClock, wanted int) *tally {
	return &tally{clock: clk, wanted: wanted, seen: map[string]bool{}, done: make(chan struct{})}
}

func (t *tally) see(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[key] {
		return
	}
	t.seen[key] = true
	if len(t.seen) == t.wanted {
		t.at = t.clock.Now()
		close(t.done)
	}
}

// wait returns when there were enough.
func (t *tally) wait(ctx context.Context, what string) (time.Time, error) {
	select {
	case <-t.done:
		return t.at, nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		return time.Time{}, fmt.Errorf("%d of %d %s: %w", len(t.seen), t.wanted, what, context.Cause(ctx))
	}
}

// missing returns the number of those that do not exist yet.
func (t *tally) missing() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wanted - len(t.seen)
}

// tallies follow a namespace from before anything is created in it.
type tallies struct {
	// made are JobSets, running are JobSets that are not suspended.
	made, running, pods *tally
}

// follow counts until ctx ends.
func (f Field) follow(ctx context.Context, namespace string, wanted int) (tallies, error) {
	counts := tallies{newTally(f.Clock, wanted), newTally(f.Clock, wanted), newTally(f.Clock, wanted)}
	sets := dynamicinformer.NewFilteredDynamicSharedInformerFactory(f.Dynamic, 0, namespace, nil).ForResource(jobSets())
	// Only the existence of pods matters, and metadata is cheap: this counter shares the machine with the measured
	// controller.
	all := metadatainformer.NewFilteredSharedInformerFactory(f.Metadata, 0, namespace, nil).ForResource(pods())
	err := f.run(ctx, jobSets(), sets.Informer(), func(key string, object any) {
		counts.made.see(key)
		jobSet, ok := object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		if suspended, _, _ := unstructured.NestedBool(jobSet.Object, "spec", "suspend"); !suspended {
			counts.running.see(key)
		}
	})
	if err != nil {
		return counts, err
	}
	return counts, f.run(ctx, pods(), all.Informer(), func(key string, _ any) { counts.pods.see(key) })
}

func (f Field) run(
	ctx context.Context,
	resource schema.GroupVersionResource,
	informer cache.SharedIndexInformer,
	see func(string, any),
) error {
	look := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			see(key, object)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, object any) { look(object) },
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", resource.Resource, err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watching %s: %w", resource.Resource, context.Cause(ctx))
	}
	return nil
}
