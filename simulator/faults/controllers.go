package faults

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	batchdefaults "k8s.io/kubernetes/pkg/apis/batch/v1"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	jobsetconstants "sigs.k8s.io/jobset/pkg/constants"
	jobsetcontrollers "sigs.k8s.io/jobset/pkg/controllers"

	"github.com/lockstep-project/lockstep/controller"
	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/trainjob"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
	"github.com/lockstep-project/lockstep/simulator/faults/fakecluster"
	"github.com/lockstep-project/lockstep/simulator/faults/wire"
)

// namespace is that of jobs, system that of Lockstep.
const (
	namespace = "team"
	system    = "lockstep-system"
)

// newScheme returns a scheme of all kinds that are read or written here, with Kubernetes' own defaults.
func newScheme() (*runtime.Scheme, error) {
	scheme, err := controller.Scheme(gangapi.Native)
	if err != nil {
		return nil, fmt.Errorf("making a scheme: %w", err)
	}
	for _, add := range []func(*runtime.Scheme) error{coredefaults.RegisterDefaults, batchdefaults.RegisterDefaults} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making a scheme: %w", err)
		}
	}
	fakecluster.AddComputeDomains(scheme)
	return scheme, nil
}

// startController starts Lockstep's controller.
func (w *world) startController() *reconciler {
	r := w.newReconciler(controllerName)
	kinds := []string{
		"TrainJob",
		"JobSet",
		"ConfigMap",
		"FrozenTrainJob",
		"PodGroup",
		"Workload",
		"TrainingRuntime",
		"ClusterTrainingRuntime",
	}
	if w.scene.Channels {
		kinds = append(kinds, "ComputeDomain")
	}
	for _, kind := range kinds {
		r.caches[kind] = stepped.NewUnfilled()
	}
	cached := wire.NewClient(r.calls, w.server, r.caches, wire.Indices{
		trainjob.RuntimeIndex: trainjob.IndexByRuntime, trainjob.GroupIndex: trainjob.IndexByJob,
		trainjob.FrozenIndex: trainjob.IndexFrozen,
	})
	live := wire.NewClient(r.calls, w.server, nil, nil)
	r.limiter = trainjob.NewRateLimiter()
	registry := prometheus.NewRegistry()
	w.registries = append(w.registries, registry)
	r.reconcile = (&trainjob.Reconciler{
		Client: cached, Live: live, Resolver: resolve.New(cached, live, system), Recorder: &record.FakeRecorder{},
		Clock: r.clock, Metrics: metrics.New(registry),
		Options: plan.Options{Gang: true, GangAPI: gangapi.Native, KeepsConstraints: true, KeepsClaims: true, ComputeDomains: w.scene.Channels},
	}).Reconcile
	r.start(kinds, followedByController)
	return r
}

// followedByController returns the requests that follow from the watches of trainjob.Reconciler.SetupWithManager.
func followedByController(kind string, old, now client.Object) []reconcile.Request {
	o := now
	if o == nil {
		o = old
	}
	switch kind {
	case "TrainJob":
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	case "FrozenTrainJob":
		state, ok := o.(*statev1alpha1.FrozenTrainJob)
		if !ok || old != nil && now != nil {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{
			Namespace: state.Spec.TrainJob.Namespace, Name: state.Spec.TrainJob.Name,
		}}}
	case "JobSet", "ConfigMap", "PodGroup", "Workload", "ComputeDomain":
		return ownerOf("TrainJob", o)
	default:
		return nil
	}
}

// startJobSet starts JobSet's controller.
func (w *world) startJobSet() *reconciler {
	r := w.newReconciler(jobsetName)
	kinds := []string{"JobSet", "Job", "Service"}
	for _, kind := range kinds {
		r.caches[kind] = stepped.NewUnfilled()
	}
	cached := wire.NewClient(r.calls, w.server, r.caches, wire.Indices{jobsetconstants.JobsIndexByJobSetKey: byJobSet})
	r.limiter = workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
	r.reconcile = jobsetcontrollers.NewJobSetReconciler(cached, w.server.Scheme(), stepped.Silent{}).Reconcile
	r.start(kinds, func(kind string, old, now client.Object) []reconcile.Request {
		o := now
		if o == nil {
			o = old
		}
		if kind == "JobSet" {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
		}
		return ownerOf("JobSet", o)
	})
	return r
}

// byJobSet is the value of a Job under JobSet's index.
func byJobSet(o client.Object) []string {
	owner := metav1.GetControllerOf(o)
	if _, ok := o.(*batchv1.Job); !ok || owner == nil || owner.Kind != "JobSet" {
		return nil
	}
	return []string{string(owner.UID)}
}

// admit plays the admission of new objects: JobSet's webhook, and Kubernetes' own plugins for PodGroups and priorities.
func admit(o client.Object) {
	switch o := o.(type) {
	case *jobsetv1alpha2.JobSet:
		defaultJobSet(o)
	case *schedulingv1beta1.PodGroup:
		o.Finalizers = append(o.Finalizers, protection)
		admitPriority(o.Spec.PriorityClassName, &o.Spec.Priority)
	case *corev1.Pod:
		admitPriority(o.Spec.PriorityClassName, &o.Spec.Priority)
	}
}
