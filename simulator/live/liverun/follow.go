package liverun

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// Options configure the watching of a run and its end.
type Options struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Clock   clock.WithTicker
	// Patience is the time for which a job may stay unplaced while no other job is running that could make room for it.
	Patience time.Duration
	// Progress receives one line whenever the phase of some job has changed.
	Progress func(string)
}

// follower sees every pod, PodGroup and TrainJob of the cluster through informers.
type follower struct {
	ledger    *summary.Ledger
	clock     clock.PassiveClock
	trainJobs cache.Store
	podGroups cache.Indexer
	warnings  cache.Store // Events that warn about TrainJobs
}

// follow starts watching; it returns when existing objects have been seen once. The watches end with ctx.
func follow(ctx context.Context, options Options) (*follower, error) {
	f := &follower{ledger: summary.NewLedger(), clock: options.Clock}
	typed := informers.NewSharedInformerFactory(options.Client, 0)
	pods := typed.Core().V1().Pods().Informer()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.observe(object) },
		UpdateFunc: func(_, object any) { f.observe(object) },
		DeleteFunc: f.observeDeletion,
	}
	if _, err := pods.AddEventHandler(handler); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	groups := typed.Scheduling().V1beta1().PodGroups().Informer()
	if err := groups.AddIndexers(cache.Indexers{byOwner: ownerOf}); err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	f.podGroups = groups.GetIndexer()

	untyped := dynamicinformer.NewDynamicSharedInformerFactory(options.Dynamic, 0)
	resource := schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
	trainJobs := untyped.ForResource(resource).Informer()
	f.trainJobs = trainJobs.GetStore()

	warnings := informers.NewSharedInformerFactoryWithOptions(options.Client, 0,
		informers.WithTweakListOptions(func(list *metav1.ListOptions) {
			list.FieldSelector = "involvedObject.kind=TrainJob,type=" + corev1.EventTypeWarning
		}))
	events := warnings.Core().V1().Events().Informer()
	f.warnings = events.GetStore()

	typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	warnings.Start(ctx.Done())
	synced := []cache.InformerSynced{pods.HasSynced, groups.HasSynced, trainJobs.HasSynced, events.HasSynced}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("watching the cluster: %w", context.Cause(ctx))
	}
	return f, nil
}

func (f *follower) observe(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		f.ledger.Observe(pod, f.clock.Now())
	}
}

func (f *follower) observeDeletion(object any) {
	if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = missed.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		f.ledger.ObserveDeletion(pod, f.clock.Now())
	}
}

// refresh updates the observations from the watches.
func (f *follower) refresh(jobs []summary.JobObservation) {
	for i := range jobs {
		key := jobs[i].TrainJob.GetNamespace() + "/" + jobs[i].TrainJob.GetName()
		if object, found, err := f.trainJobs.GetByKey(key); err == nil && found {
			if latest, ok := object.(*unstructured.Unstructured); ok {
				jobs[i].TrainJob = latest
			}
		}
		if latest := f.groupsOf(jobs[i].TrainJob.GetUID()); len(latest) > 0 {
			jobs[i].PodGroups = latest
		}
	}
	f.warn(jobs)
}

// byOwner is the index under which PodGroups are found by the UID of their TrainJob.
const byOwner = "owner"

func ownerOf(object any) ([]string, error) {
	group, ok := object.(*schedulingv1beta1.PodGroup)
	if !ok {
		return nil, nil
	}
	owner := ownership.ControllerOf(group, plan.TrainJobKind())
	if owner == nil {
		return nil, nil
	}
	return []string{string(owner.UID)}, nil
}

// groupsOf returns the PodGroups of a TrainJob, by name; none where the job is no gang or where they are deleted.
func (f *follower) groupsOf(job types.UID) []*schedulingv1beta1.PodGroup {
	found, err := f.podGroups.ByIndex(byOwner, string(job))
	if err != nil {
		return nil
	}
	var groups []*schedulingv1beta1.PodGroup
	for _, object := range found {
		if group, ok := object.(*schedulingv1beta1.PodGroup); ok {
			groups = append(groups, group)
		}
	}
	slices.SortFunc(groups, func(a, b *schedulingv1beta1.PodGroup) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

// warn gives each job the note of the last Event that warned about it.
func (f *follower) warn(jobs []summary.JobObservation) {
	last := map[types.UID]*corev1.Event{}
	for _, object := range f.warnings.List() {
		event, ok := object.(*corev1.Event)
		if !ok {
			continue
		}
		former := last[event.InvolvedObject.UID]
		if former == nil || newer(event, former) {
			last[event.InvolvedObject.UID] = event
		}
	}
	for i := range jobs {
		if event := last[jobs[i].TrainJob.GetUID()]; event != nil {
			jobs[i].Warning = event.Message
		}
	}
}

// newer reports whether an Event was written after another; an Event that repeats is written again.
func newer(event, former *corev1.Event) bool {
	order, err := resourceversion.CompareResourceVersion(event.ResourceVersion, former.ResourceVersion)
	return err == nil && order > 0
}
