package members

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Ended follows the pods of a scheduler that have succeeded or failed.
//
// kube-scheduler's informer selects the others: there a pod that ends is deleted, with its earlier status, and why it
// ended is not seen. A nil Ended belongs to a scheduler that is played, whose informer has all pods.
type Ended struct {
	mu sync.Mutex
	// informers are by profile: the API server can select pods by one schedulerName only, and a profile may have
	// several.
	informers map[string][]cache.SharedIndexInformer
	// aliases are further names of profiles, each with that of the profile, which the decoded pods have.
	aliases map[string]string
	// heard are called with each pod that ends, or had ended, under any profile.
	heard []func(*corev1.Pod)
	// open makes the informer of the pods of a name, with the index by group.
	open func(ctx context.Context, handle fwk.Handle, name string) (cache.SharedIndexInformer, error)
}

// NewEnded returns an Ended that follows no profile yet. aliases has the further names of profiles, each with that of
// the profile.
func NewEnded(aliases map[string]string) *Ended {
	return &Ended{informers: make(map[string][]cache.SharedIndexInformer), aliases: aliases, open: watch}
}

// EndedOf returns an Ended for a scheduler that is played. Its caller fills the informer with the ended pods of the
// only profile.
func EndedOf(informer cache.SharedIndexInformer) *Ended {
	return &Ended{
		informers: make(map[string][]cache.SharedIndexInformer),
		open: func(context.Context, fwk.Handle, string) (cache.SharedIndexInformer, error) {
			return prepared(informer)
		},
	}
}

// Follow calls happened with each pod of the handle's profile that ends from now on, until the context ends. Those that
// had ended before the first call are not reported.
func (e *Ended) Follow(ctx context.Context, handle fwk.Handle, happened func(*corev1.Pod)) error {
	return e.FollowAll(ctx, handle, happened, func(*corev1.Pod) {})
}

// FollowAll is Follow, and calls earlier with each pod that had ended before. The two are called in any order.
func (e *Ended) FollowAll(ctx context.Context, handle fwk.Handle, happened, earlier func(*corev1.Pod)) error {
	if e == nil {
		return nil
	}
	informers, err := e.begin(ctx, handle)
	if err != nil {
		return err
	}
	added := cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(object any, initial bool) {
		pod, ok := object.(*corev1.Pod)
		switch {
		case !ok:
		case !initial:
			happened(pod)
		default:
			earlier(pod)
		}
	}}
	for _, informer := range informers {
		if _, err := informer.AddEventHandler(added); err != nil {
			return fmt.Errorf("watching ended pods: %w", err)
		}
	}
	return nil
}

// begin returns the informers of the handle's profile, which it starts at the first call.
func (e *Ended) begin(ctx context.Context, handle fwk.Handle) ([]cache.SharedIndexInformer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	profile := handle.ProfileName()
	if informers := e.informers[profile]; informers != nil {
		return informers, nil
	}
	names := []string{profile}
	for _, alias := range slices.Sorted(maps.Keys(e.aliases)) {
		if e.aliases[alias] == profile {
			names = append(names, alias)
		}
	}
	var informers []cache.SharedIndexInformer
	for _, name := range names {
		informer, err := e.open(ctx, handle, name)
		if err != nil {
			return nil, err
		}
		informers = append(informers, informer)
	}
	for _, informer := range informers {
		if err := e.hear(informer); err != nil {
			return nil, err
		}
	}
	e.informers[profile] = informers
	return informers, nil
}

// Hear calls happened with each pod that ends, or had ended before. It must be called before the first Follow.
func (e *Ended) Hear(happened func(*corev1.Pod)) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, happened)
}

func (e *Ended) hear(informer cache.SharedIndexInformer) error {
	for _, happened := range e.heard {
		added := cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				happened(pod)
			}
		}}
		if _, err := informer.AddEventHandler(added); err != nil {
			return fmt.Errorf("watching ended pods: %w", err)
		}
	}
	return nil
}

// Of returns the pods of a gang that have ended, under any profile. They have no more than those of Succeeded.
func (e *Ended) Of(gang types.NamespacedName) []*corev1.Pod {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []*corev1.Pod
	for _, profile := range slices.Sorted(maps.Keys(e.informers)) {
		for _, informer := range e.informers[profile] {
			found = append(found, Of(informer.GetIndexer(), gang)...)
		}
	}
	return found
}

// of returns the informers of a profile; none before the first Follow.
func (e *Ended) of(profile string) []cache.SharedIndexInformer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.informers[profile]
}

// watch starts an informer of the ended pods of a schedulerName.
func watch(ctx context.Context, handle fwk.Handle, name string) (cache.SharedIndexInformer, error) {
	selector := fields.AndSelectors(
		fields.OneTermEqualSelector("spec.schedulerName", name),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodPending)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodRunning)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodUnknown)),
	).String()
	informer, err := prepared(coreinformers.NewFilteredPodInformer(
		handle.ClientSet(),
		metav1.NamespaceAll,
		0,
		cache.Indexers{},
		func(options *metav1.ListOptions) { options.FieldSelector = selector },
	))
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return informer, nil
}

// prepared gives an informer its indexers, and has it keep no more than gangs are judged by.
func prepared(informer cache.SharedIndexInformer) (cache.SharedIndexInformer, error) {
	if err := informer.AddIndexers(cache.Indexers{byGroup: groupOf}); err != nil {
		return nil, fmt.Errorf("indexing ended pods: %w", err)
	}
	if err := informer.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("trimming ended pods: %w", err)
	}
	return informer, nil
}

// Synced reports whether the pods that had ended at the start are known.
func (e *Ended) Synced(profile string) bool {
	if e == nil {
		return true
	}
	informers := e.of(profile)
	unsynced := func(informer cache.SharedIndexInformer) bool { return !informer.HasSynced() }
	return len(informers) > 0 && !slices.ContainsFunc(informers, unsynced)
}

// Succeeded returns the pods of a gang that have succeeded, in the order of their names. They have the fields that
// identify a pod, their node, phase and reason, and nothing else.
func (e *Ended) Succeeded(profile string, gang types.NamespacedName) []*corev1.Pod {
	if e == nil {
		return nil
	}
	var found []*corev1.Pod
	for _, informer := range e.of(profile) {
		for _, pod := range Of(informer.GetIndexer(), gang) {
			if snapshot.Succeeded(pod) {
				found = append(found, pod)
			}
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// Phase returns the final phase of a pod, "" if it is not known. It is known before Follow's callback runs.
func (e *Ended) Phase(pod *corev1.Pod) corev1.PodPhase {
	if e == nil {
		return ""
	}
	for _, informer := range e.of(pod.Spec.SchedulerName) {
		object, known, err := informer.GetStore().Get(pod)
		ended, ok := object.(*corev1.Pod)
		if err == nil && known && ok && ended.UID == pod.UID {
			return ended.Status.Phase
		}
	}
	return ""
}

// trim retains of an ended pod the fields by which its gang is judged: a fleet has many of them.
func trim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, OwnerReferences: pod.OwnerReferences,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			NodeName:        pod.Spec.NodeName,
			SchedulerName:   pod.Spec.SchedulerName,
			SchedulingGroup: pod.Spec.SchedulingGroup,
		},
		Status: endOf(pod.Status),
	}, nil
}

// endOf returns the part of the status that shows why a pod ended.
func endOf(status corev1.PodStatus) corev1.PodStatus {
	end := corev1.PodStatus{Phase: status.Phase, Reason: status.Reason, Message: status.Message}
	if status.Phase == corev1.PodSucceeded {
		return end
	}
	for _, condition := range status.Conditions {
		if condition.Type == corev1.DisruptionTarget {
			end.Conditions = append(end.Conditions, condition)
		}
	}
	end.InitContainerStatuses, end.ContainerStatuses = endsOf(
		status.InitContainerStatuses,
	), endsOf(
		status.ContainerStatuses,
	)
	return end
}

func endsOf(containers []corev1.ContainerStatus) []corev1.ContainerStatus {
	var ends []corev1.ContainerStatus
	for _, c := range containers {
		if c.State.Terminated != nil {
			ends = append(
				ends,
				corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Terminated: c.State.Terminated}},
			)
		}
	}
	return ends
}
