// Package podgrouper maintains the PodGroups of gangs that other controllers mark (see package dialects): it creates
// one for the marked pods of this scheduler, changes it when the object behind the mark changes, and deletes it with
// the last pod if no object stands behind it.
package podgrouper

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/retries"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// standby is the pause after which a scheduler that does not lead looks at a group again.
const standby = 5 * time.Second

// Reader reads the marks of pods.
type Reader interface {
	// Read returns the mark of a pod of this scheduler's; false for all other pods.
	Read(pod *corev1.Pod) (dialects.Mark, bool)
	// Annotations returns the annotations by which the PodGroup of a mark states its reading.
	Annotations(of dialects.Mark) (map[string]string, error)
	// ByName returns the dialect of a name.
	ByName(name string) (dialects.Dialect, bool)
}

// Grouper maintains the PodGroups of marked pods.
type Grouper struct {
	marks    Reader
	client   kubernetes.Interface
	objects  Objects
	sources  *sources
	ended    *members.Ended
	api      gangapi.API
	groups   schedulinglisters.PodGroupLister
	pods     cache.Indexer
	recorder events.EventRecorder
	synced   []cache.InformerSynced
	queue    workqueue.TypedRateLimitingInterface[string]
	// leads reports whether this scheduler decides.
	leads func() bool
}

// Cluster has the clients and informers of a Grouper.
type Cluster struct {
	// Client writes PodGroups of the API, Objects reads the objects behind marks.
	Client  kubernetes.Interface
	Objects Objects
	API     gangapi.API
	// Factory has the scheduler's informers; they must not have started.
	Factory informers.SharedInformerFactory
	// Ended has the pods that have ended, which the factory's informer does not show. It must not follow a profile yet.
	Ended *members.Ended
	// Recorder reports marks that cannot be read, on the pods.
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
}

// New returns a Grouper. leads reports whether this scheduler decides.
func New(in Cluster, marks Reader, leads func() bool) (*Grouper, error) {
	groups, pods := in.Factory.Scheduling().V1beta1().PodGroups(), in.Factory.Core().V1().Pods().Informer()
	g := &Grouper{
		marks:    marks,
		client:   in.Client,
		api:      in.API,
		groups:   groups.Lister(),
		pods:     pods.GetIndexer(),
		recorder: in.Recorder,
		objects:  in.Objects,
		ended:    in.Ended,
		leads:    leads,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			retries.Limiter(),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "podgrouper"},
		),
	}
	g.sources = newSources(in.Objects, in.Clock, g.queue.Add)
	in.Ended.Hear(g.podEnded)
	if err := members.Index(pods); err != nil {
		return nil, fmt.Errorf("preparing the informer of pods: %w", err)
	}
	ofPods, err := pods.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: g.podChanged, UpdateFunc: g.podUpdated, DeleteFunc: g.podChanged},
	)
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	// A PodGroup that was deleted while it has members is created again; one whose last pod ended while no scheduler
	// ran is deleted.
	ofGroups, err := groups.Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: g.groupChanged, DeleteFunc: g.groupChanged},
	)
	if err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	g.synced = []cache.InformerSynced{ofPods.HasSynced, ofGroups.HasSynced, groups.Informer().HasSynced}
	return g, nil
}

// Run works until the context ends.
func (g *Grouper) Run(ctx context.Context) {
	defer g.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), g.synced...) {
		return
	}
	go func() {
		for g.next(ctx) {
		}
	}()
	<-ctx.Done()
}

func (g *Grouper) next(ctx context.Context) bool {
	key, ended := g.queue.Get()
	if ended {
		return false
	}
	defer g.queue.Done(key)
	if !g.leads() {
		g.queue.AddAfter(key, standby)
		return true
	}
	err := g.group(ctx, key)
	switch {
	case err == nil:
		g.queue.Forget(key)
		return true
	case errors.Is(err, errNoSource),
		errors.Is(err, dialects.ErrNoSize),
		apierrors.IsConflict(err),
		apierrors.IsAlreadyExists(err):
		klog.FromContext(ctx).V(2).Info("Grouping pods later", "podGroup", key, "reason", err.Error())
	default:
		klog.FromContext(ctx).Error(err, "Grouping pods failed; trying again", "podGroup", key)
	}
	g.queue.AddRateLimited(key)
	return true
}

// group brings one PodGroup up to date with its pods and the object behind their mark.
func (g *Grouper) group(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("reading the key of a PodGroup: %w", err)
	}
	now, err := g.groups.PodGroups(namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading PodGroup %s: %w", key, err)
	}
	if apierrors.IsNotFound(err) {
		now = nil
	}
	pods := members.Of(g.pods, types.NamespacedName{Namespace: namespace, Name: name})
	if len(pods) == 0 {
		return g.withoutPods(ctx, key, now)
	}
	mark, marked := g.marks.Read(pods[0])
	if !marked || mark.PodGroup != name {
		return nil // its members name it themselves
	}
	if now != nil && now.Annotations[dialects.AnnotationDialect] == "" {
		return nil // a user made it
	}
	source, err := g.sources.of(ctx, key, mark, pods[0])
	if err != nil {
		g.report(key, pods[0], mark, err)
		return err
	}
	wants, err := g.wanted(mark, pods, source)
	if err != nil {
		g.report(key, pods[0], mark, err)
		return err
	}
	if now == nil {
		return g.create(ctx, wants)
	}
	if err := g.change(ctx, now, wants); err != nil {
		return err
	}
	return g.tell(ctx, now, mark.Dialect, source)
}

// withoutPods deletes a PodGroup that has no members, unless the object that it is of may make some: its place in the
// queue is reserved for them.
func (g *Grouper) withoutPods(ctx context.Context, key string, now *schedulingv1beta1.PodGroup) error {
	switch {
	case now == nil:
		// Its PodGroup may exist and not be known yet, and is then deleted with the object.
		if !g.sources.exists(key) {
			g.sources.forget(key)
		}
		return nil
	case now.Annotations[dialects.AnnotationDialect] == "", now.DeletionTimestamp != nil:
		return nil
	case len(now.OwnerReferences) > 0 && g.sources.exists(key):
		dialect, _ := g.dialectOf(now)
		return g.tell(ctx, now, dialect, g.sources.known(key))
	}
	return g.delete(ctx, now)
}

// quiet is the number of failed tries before a pod gets a report: about a second, in which controllers make the object
// behind their mark, and it becomes known here.
const quiet = 8

// report writes an Event on a pod with the reason for which it is in no gang yet.
func (g *Grouper) report(key string, pod *corev1.Pod, mark dialects.Mark, err error) {
	if g.queue.NumRequeues(key) < quiet {
		return
	}
	g.recorder.Eventf(
		pod,
		nil,
		corev1.EventTypeWarning,
		"GangUnreadable",
		"Grouping",
		"its mark as a member of %s (%s) cannot be read: %v",
		mark.Group,
		mark.Dialect.Name,
		err,
	)
}

func (g *Grouper) podChanged(object any) {
	pod, ok := snapshot.ObjectOf[*corev1.Pod](object)
	if !ok {
		return
	}
	if _, marked := g.marks.Read(pod); !marked {
		return
	}
	if key, ok := snapshot.GroupOf(pod); ok {
		g.queue.Add(key.String())
	}
}

func (g *Grouper) groupChanged(object any) {
	group, ok := snapshot.ObjectOf[*schedulingv1beta1.PodGroup](object)
	if ok && group.Annotations[dialects.AnnotationDialect] != "" {
		g.queue.Add(group.Namespace + "/" + group.Name)
	}
}

// ownedBy returns the reference to the object behind a mark, with which a PodGroup is deleted.
func ownedBy(source *source) []metav1.OwnerReference {
	if source == nil {
		return nil
	}
	return []metav1.OwnerReference{source.reference}
}
