package demand

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/retries"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

const (
	// settle is the time for which a gang must ask for the same before a request is written: most gangs that wait for
	// victims or their turn start earlier.
	settle = 10 * time.Second
	// gather is the pause in which changes of a gang are gathered: its members are created one by one.
	gather = time.Second
	// standby is the pause after which a scheduler that does not lead looks at a gang again.
	standby = 5 * time.Second
)

// Requester maintains the requests of the gangs that wait.
type Requester struct {
	cluster Cluster
	class   string
	groups  schedulinglisters.PodGroupLister
	pods    cache.Indexer
	synced  []cache.InformerSynced
	queue   workqueue.TypedRateLimitingInterface[string]
	// leads reports whether this scheduler decides.
	leads func() bool
	// requests are the ProvisioningRequests of gangs. Run sets it before the worker starts.
	requests *requests
	// asks holds the unwritten demand of each gang as first seen, and the time of that. Only the worker uses it.
	asks map[string]ask
}

type ask struct {
	name  string
	since time.Time
}

// New returns a Requester of a provisioning class, which follows the factory's informers; they must not have started.
// leads reports whether this scheduler decides.
func New(in Cluster, factory informers.SharedInformerFactory, class string, leads func() bool) (*Requester, error) {
	groups, pods := factory.Scheduling().V1beta1().PodGroups(), factory.Core().V1().Pods().Informer()
	r := &Requester{
		cluster: in,
		class:   class,
		groups:  groups.Lister(),
		pods:    pods.GetIndexer(),
		leads:   leads,
		asks:    make(map[string]ask),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			retries.Limiter(),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "demand", Clock: in.Clock},
		),
	}
	if err := members.Index(pods); err != nil {
		return nil, fmt.Errorf("preparing the informer of pods: %w", err)
	}
	ofGroups, err := groups.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: r.groupChanged, UpdateFunc: func(_, now any) { r.groupChanged(now) }, DeleteFunc: r.groupChanged,
	})
	if err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	ofPods, err := pods.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: r.podChanged, DeleteFunc: r.podChanged},
	)
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	r.synced = []cache.InformerSynced{ofGroups.HasSynced, ofPods.HasSynced}
	return r, nil
}

// Run works until the context ends, from when ProvisioningRequests are served.
func (r *Requester) Run(ctx context.Context) {
	defer r.queue.ShutDown()
	version, served := r.cluster.await(ctx)
	if !served {
		return
	}
	requests, err := follow(ctx, r.cluster, version, r.queue.Add)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Gangs that wait request no nodes")
		return
	}
	r.requests = requests
	if !cache.WaitForCacheSync(ctx.Done(), append(r.synced, requests.synced)...) {
		return
	}
	go func() {
		for r.next(ctx) {
		}
	}()
	<-ctx.Done()
}

func (r *Requester) next(ctx context.Context) bool {
	key, ended := r.queue.Get()
	if ended {
		return false
	}
	defer r.queue.Done(key)
	if !r.leads() {
		r.queue.AddAfter(key, standby)
		return true
	}
	if err := r.keep(ctx, key); err != nil {
		klog.FromContext(ctx).Error(err, "Requesting nodes failed; trying again", "podGroup", key)
		r.queue.AddRateLimited(key)
		return true
	}
	r.queue.Forget(key)
	return true
}

// keep makes the requests of a gang equal to its demand: one, or none. A new one is written before the last is deleted.
func (r *Requester) keep(ctx context.Context, key string) error {
	group, err := r.group(key)
	if err != nil {
		return err
	}
	wanted, wants := Request{}, false
	if group != nil {
		name := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
		wanted, wants = Wanted(group, members.Of(r.pods, name), r.class)
	}
	written := r.requests.of(key)
	is := func(request *unstructured.Unstructured) bool { return wants && request.GetName() == wanted.Name }
	if wants && !slices.ContainsFunc(written, is) {
		if wait := r.unsettled(key, wanted.Name); wait > 0 {
			r.queue.AddAfter(key, wait)
			return nil
		}
		klog.FromContext(ctx).Info("Requesting nodes for gang", "podGroup", key, "provisioningRequest", wanted.Name,
			"members", wanted.Members())
		if err := r.cluster.create(ctx, group, wanted, r.requests.resource); err != nil {
			return err
		}
	}
	delete(r.asks, key)
	for _, request := range written {
		if is(request) {
			continue
		}
		klog.FromContext(ctx).
			Info("Withdrawing request for nodes", "podGroup", key, "provisioningRequest", request.GetName())
		if err := r.cluster.delete(ctx, request, r.requests.resource); err != nil {
			return err
		}
	}
	return nil
}

// group returns the PodGroup of that key; nil for none.
func (r *Requester) group(key string) (*schedulingv1beta1.PodGroup, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, fmt.Errorf("reading the key of a PodGroup: %w", err)
	}
	group, err := r.groups.PodGroups(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PodGroup %s: %w", key, err)
	}
	return group, nil
}

// unsettled returns the time for which a gang must continue to ask for the same.
func (r *Requester) unsettled(key, name string) time.Duration {
	now := r.cluster.Clock.Now()
	if r.asks[key].name != name {
		r.asks[key] = ask{name: name, since: now}
	}
	return r.asks[key].since.Add(settle).Sub(now)
}

func (r *Requester) groupChanged(object any) {
	group, ok := snapshot.ObjectOf[*schedulingv1beta1.PodGroup](object)
	if ok && group.Spec.SchedulingPolicy.Gang != nil {
		r.queue.AddAfter(group.Namespace+"/"+group.Name, gather)
	}
}

func (r *Requester) podChanged(object any) {
	pod, ok := snapshot.ObjectOf[*corev1.Pod](object)
	if !ok {
		return
	}
	if key, ok := snapshot.GroupOf(pod); ok {
		r.queue.AddAfter(key.String(), gather)
	}
}
