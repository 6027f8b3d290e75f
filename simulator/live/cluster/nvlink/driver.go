package nvlink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// pause is the time for which the driver rests after each look: changes of that time are seen together.
	pause = 50 * time.Millisecond
	// retry is the time after which it looks again after a failure.
	retry = time.Second
)

// errNotSynced indicates that the driver was stopped before it had seen the cluster.
var errNotSynced = errors.New("playing NVIDIA's driver: the cluster was not seen in time")

// Driver plays the driver on one cluster.
type Driver struct {
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	clock    clock.Clock
	settings Settings

	typed   informers.SharedInformerFactory
	domains cache.SharedIndexInformer
	changed chan struct{}
	memory  Memory
	// told holds the refused pods, with the reported reason.
	told map[types.NamespacedName]string
}

// New returns a driver with that access to the cluster; Start starts it.
func New(access *rest.Config, timekeeper clock.Clock, settings Settings) (*Driver, error) {
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("making a client for NVIDIA's driver: %w", err)
	}
	untyped, err := dynamic.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("making a client for NVIDIA's driver: %w", err)
	}
	return &Driver{
		client: client, dynamic: untyped, clock: timekeeper, settings: settings,
		changed: make(chan struct{}, 1), memory: Memory{}, told: map[types.NamespacedName]string{},
	}, nil
}

// Start sees the cluster, and plays the driver in the background until ctx ends.
func (d *Driver) Start(ctx context.Context) error {
	d.typed = informers.NewSharedInformerFactoryWithOptions(d.client, 0, informers.WithTransform(withoutHistory))
	untyped := dynamicinformer.NewDynamicSharedInformerFactory(d.dynamic, 0)
	d.domains = untyped.ForResource(Resource()).Informer()
	watched := []cache.SharedIndexInformer{
		d.domains,
		d.typed.Core().V1().Nodes().Informer(),
		d.typed.Core().V1().Pods().Informer(),
		d.typed.Resource().
			V1().
			ResourceClaims().
			Informer(),
		d.typed.Resource().V1().ResourceClaimTemplates().Informer(),
		d.typed.Resource().V1().ResourceSlices().Informer(),
	}
	notice := func(any) {
		select {
		case d.changed <- struct{}{}:
		default: // the next look sees this change too
		}
	}
	var synced []cache.InformerSynced
	for _, informer := range watched {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: notice, UpdateFunc: func(_, after any) { notice(after) }, DeleteFunc: notice,
		})
		if err != nil {
			return fmt.Errorf("watching for NVIDIA's driver: %w", err)
		}
		synced = append(synced, informer.HasSynced)
	}
	d.typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errNotSynced
	}
	notice(nil)
	go d.run(ctx)
	return nil
}

// withoutHistory drops the managed fields, which take most of an object's memory and are never read.
func withoutHistory(object any) (any, error) {
	if metadata, err := meta.Accessor(object); err == nil {
		metadata.SetManagedFields(nil)
	}
	return object, nil
}

// run looks and acts whenever something changes or is due.
func (d *Driver) run(ctx context.Context) {
	due := d.clock.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.changed:
		case <-due.C():
		}
		next := d.step(ctx)
		if next > 0 {
			due.Reset(next)
		}
		select {
		case <-ctx.Done():
			return
		case <-d.clock.After(pause):
		}
	}
}

// step looks once and carries out due actions. It returns the time after which to look again in any case; zero for
// never.
func (d *Driver) step(ctx context.Context) time.Duration {
	seen, err := d.look()
	if err != nil {
		klog.FromContext(ctx).Error(err, "Looking at the cluster")
		return retry
	}
	actions, memory, next := Decide(seen.See(), d.memory, d.clock.Now(), d.settings)
	d.memory = memory
	maps.DeleteFunc(d.told, func(pod types.NamespacedName, _ string) bool {
		return !slices.ContainsFunc(actions, func(a Action) bool { return a.Verb == Refuse && a.Key == pod })
	})
	for _, action := range actions {
		if err := d.act(ctx, action); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).
				Info("Could not act", "verb", action.Verb, "object", action.Key, "reason", err.Error())
			next = retry
		}
	}
	return next
}

// look reads the caches.
func (d *Driver) look() (Cluster, error) {
	seen := Cluster{
		Claims:    map[types.NamespacedName]*resourcev1.ResourceClaim{},
		Templates: map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{},
		Published: map[string]bool{},
	}
	for _, object := range d.domains.GetStore().List() {
		if domain, ok := object.(*unstructured.Unstructured); ok {
			seen.Domains = append(seen.Domains, domain)
		}
	}
	all, resources := labels.Everything(), d.typed.Resource().V1()
	var err, failed error
	seen.Nodes, err = d.typed.Core().V1().Nodes().Lister().List(all)
	failed = errors.Join(failed, err)
	seen.Pods, err = d.typed.Core().V1().Pods().Lister().List(all)
	failed = errors.Join(failed, err)
	claims, err := resources.ResourceClaims().Lister().List(all)
	failed = errors.Join(failed, err)
	for _, claim := range claims {
		seen.Claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	templates, err := resources.ResourceClaimTemplates().Lister().List(all)
	failed = errors.Join(failed, err)
	for _, made := range templates {
		seen.Templates[types.NamespacedName{Namespace: made.Namespace, Name: made.Name}] = made
	}
	channels, err := resources.ResourceSlices().Lister().List(all)
	for _, channel := range channels {
		seen.Published[channel.Name] = true
	}
	return seen, errors.Join(failed, err)
}

// node is a node as the cache shows it; nil if it does not.
func (d *Driver) node(name string) *corev1.Node {
	node, err := d.typed.Core().V1().Nodes().Lister().Get(name)
	if err != nil {
		return nil
	}
	return node
}
