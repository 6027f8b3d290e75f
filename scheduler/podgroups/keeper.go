// Package podgroups does for PodGroups that are custom resources the work of Kubernetes' API server and
// kube-controller-manager for their own: it gives a group the priority of its pods, and retains a deleted group until
// its pods have ended.
//
// Only the scheduler has the data for that without a further cache: all pods that have not ended.
package podgroups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/retries"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Keeper maintains the PodGroups of one cluster.
type Keeper struct {
	client kubernetes.Interface
	groups schedulinglisters.PodGroupLister
	pods   cache.Indexer
	synced []cache.InformerSynced
	queue  workqueue.TypedRateLimitingInterface[string]
	// written has the versions of groups that were written and not seen since. Only the worker uses it.
	written map[string]string
	// adopts says that groups without finalizer and priority get them: native ones have both from the API server.
	adopts bool
	// leads reports whether this scheduler decides, and not another one for which it stands by.
	leads func() bool
}

// New returns a keeper that follows the factory's informers. It must be called before these start.
func New(
	client kubernetes.Interface, factory informers.SharedInformerFactory, api gangapi.API, leads func() bool,
) (*Keeper, error) {
	groups, pods := factory.Scheduling().V1beta1().PodGroups(), factory.Core().V1().Pods().Informer()
	k := &Keeper{
		client:  client,
		written: make(map[string]string),
		groups:  groups.Lister(),
		pods:    pods.GetIndexer(),
		adopts:  api == gangapi.Resources,
		leads:   leads,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			retries.Limiter(),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "podgroups"},
		),
	}
	if err := members.Index(pods); err != nil {
		return nil, err
	}
	ofGroups, err := groups.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: k.groupChanged, UpdateFunc: func(_, now any) { k.groupChanged(now) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	ofPods, err := pods.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: k.podChanged, DeleteFunc: k.podChanged},
	)
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	k.synced = []cache.InformerSynced{ofGroups.HasSynced, ofPods.HasSynced}
	return k, nil
}

// Run works until the context ends. A group is looked at once all pods are known: before, every group would seem to
// have none.
func (k *Keeper) Run(ctx context.Context) {
	defer k.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), k.synced...) {
		return
	}
	go func() {
		for k.next(ctx) {
		}
	}()
	<-ctx.Done()
}

func (k *Keeper) next(ctx context.Context) bool {
	key, ended := k.queue.Get()
	if ended {
		return false
	}
	defer k.queue.Done(key)
	if err := k.keep(ctx, key); err != nil {
		log := klog.FromContext(ctx)
		if apierrors.IsConflict(err) || errors.Is(err, errStandsBy) {
			log.V(2).Info("Keeping a PodGroup later", "podGroup", key, "reason", err.Error())
		} else {
			log.Error(err, "Keeping a PodGroup failed; trying again", "podGroup", key)
		}
		k.queue.AddRateLimited(key)
		return true
	}
	k.queue.Forget(key)
	return true
}

// keep writes the missing fields of one group, in one write.
func (k *Keeper) keep(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("reading the key of a PodGroup: %w", err)
	}
	group, err := k.groups.PodGroups(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		delete(k.written, key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading PodGroup %s: %w", key, err)
	}
	if last, ok := k.written[key]; ok {
		order, err := resourceversion.CompareResourceVersion(group.ResourceVersion, last)
		if err == nil && order < 0 {
			return nil // the last write is yet to be seen, and adds the key again then
		}
		delete(k.written, key)
	}
	lacks := k.lacking(group, members.Of(k.pods, types.NamespacedName{Namespace: namespace, Name: name}))
	if lacks.nothing() {
		return nil
	}
	if !k.leads() {
		return errStandsBy
	}
	return k.write(ctx, group, lacks)
}

// errStandsBy has a group looked at again: this scheduler may lead by then.
var errStandsBy = errors.New("another scheduler leads")

// lack holds the missing fields of a group.
type lack struct {
	// finalizers replace the group's if they are not nil.
	finalizers []string
	priority   *int32
}

func (l lack) nothing() bool { return l.finalizers == nil && l.priority == nil }

// lacking returns the fields that a group is to get, by the pods of it that have not ended.
func (k *Keeper) lacking(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) lack {
	var lacks lack
	protected := slices.Contains(group.Finalizers, gangapi.Finalizer)
	if !group.DeletionTimestamp.IsZero() {
		if protected && len(pods) == 0 {
			lacks.finalizers = slices.DeleteFunc(append([]string{}, group.Finalizers...),
				func(finalizer string) bool { return finalizer == gangapi.Finalizer })
		}
		return lacks
	}
	if !k.adopts {
		return lacks
	}
	if !protected { // at once, as Kubernetes' own have it: a later write may conflict with the gang's condition
		lacks.finalizers = append(slices.Clone(group.Finalizers), gangapi.Finalizer)
	}
	if len(pods) > 0 && Unstamped(group, pods[0]) {
		lacks.priority = pods[0].Spec.Priority
	}
	return lacks
}

// Unstamped reports whether a group is yet to get the priority of its pods. Kubernetes' own groups have one from the
// start.
func Unstamped(group *schedulingv1beta1.PodGroup, member *corev1.Pod) bool {
	return group.Spec.Priority == nil && member.Spec.Priority != nil && *member.Spec.Priority != 0
}

// step is one of a JSON patch (RFC 6902).
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// write gives a group its missing fields if they are still missing. It names the replaced values and not the version:
// the group's status is written all the time, and none of these writes is to fail for the other.
func (k *Keeper) write(ctx context.Context, group *schedulingv1beta1.PodGroup, lacks lack) error {
	steps := []step{{"test", "/metadata/uid", group.UID}}
	if lacks.finalizers != nil {
		const finalizers = "/metadata/finalizers"
		steps = append(steps, step{"test", finalizers, group.Finalizers}, step{"add", finalizers, lacks.finalizers})
	}
	if lacks.priority != nil {
		const priority = "/spec/priority"
		steps = append(steps, step{"test", priority, nil}, step{"add", priority, *lacks.priority})
	}
	patch, err := json.Marshal(steps)
	if err != nil {
		return fmt.Errorf("encoding a change of PodGroup %s: %w", group.Name, err)
	}
	written, err := k.client.SchedulingV1beta1().PodGroups(group.Namespace).
		Patch(ctx, group.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("changing PodGroup %s: %w", group.Name, err)
	}
	if group.DeletionTimestamp.IsZero() { // one that is let go is not seen again
		k.written[group.Namespace+"/"+group.Name] = written.ResourceVersion
	}
	return nil
}

func (k *Keeper) groupChanged(object any) {
	if group, ok := object.(*schedulingv1beta1.PodGroup); ok {
		k.queue.Add(group.Namespace + "/" + group.Name)
	}
}

func (k *Keeper) podChanged(object any) {
	if pod, ok := snapshot.ObjectOf[*corev1.Pod](object); ok {
		if key, ok := snapshot.GroupOf(pod); ok {
			k.queue.Add(key.String())
		}
	}
}
