package kueuecheck

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// controllerName names the controller of the AdmissionChecks that this package answers.
const controllerName = "lockstep.dev/nodes"

// labelJobUID is Kueue's label of a Workload with the UID of its job.
const labelJobUID = "kueue.x-k8s.io/job-uid"

// group returns the API version of Kueue's objects that is read and written.
func group() schema.GroupVersion {
	return schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}
}

// Controller answers checks. Kueue's objects are read as unstructured: Kueue's types do not compile with our
// Kubernetes.
type Controller struct {
	Client client.Client
	// Cache reads Kueue's objects and TrainJobs without a call.
	Cache client.Reader
	Class class.Class
	Clock clock.PassiveClock
	// After is the time that an admitted job may wait for nodes.
	After time.Duration
}

// SetupWithManager adds the controller of AdmissionChecks and that of Workloads.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("kueue-admissioncheck").For(object("AdmissionCheck")).
		Complete(reconcile.Func(c.activate))
	if err != nil {
		return fmt.Errorf("adding the controller of AdmissionChecks: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("kueue-workload").For(object("Workload")).
		Watches(&trainerv1alpha1.TrainJob{}, handler.EnqueueRequestsFromMapFunc(c.workloadsOf)).
		Watches(object("AdmissionCheck"), handler.EnqueueRequestsFromMapFunc(c.allWorkloads)).
		Complete(reconcile.Func(c.answer))
	if err != nil {
		return fmt.Errorf("adding the controller of Workloads: %w", err)
	}
	return nil
}

// activate marks an AdmissionCheck as served: without that Kueue admits nothing of its ClusterQueues.
func (c *Controller) activate(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	check := object("AdmissionCheck")
	if err := c.Cache.Get(ctx, request.NamespacedName, check); err != nil || !isOurs(check) {
		return ctrl.Result{}, client.IgnoreNotFound(
			err,
		)
	}
	var status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	}
	fields, _, _ := unstructured.NestedMap(check.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading AdmissionCheck %s: %w", check.GetName(), err)
	}
	changed := meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: "Active", Status: metav1.ConditionTrue, Reason: "Active", ObservedGeneration: check.GetGeneration(),
		Message: "lockstep-controller answers this check", LastTransitionTime: metav1.NewTime(c.Clock.Now()),
	})
	if !changed {
		return ctrl.Result{}, nil
	}
	next, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("printing the status of AdmissionCheck %s: %w", check.GetName(), err)
	}
	return ctrl.Result{}, c.patch(ctx, check, next["conditions"], "status", "conditions")
}

// answer sets the state of those checks of a Workload that are Lockstep's.
func (c *Controller) answer(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	workload := object("Workload")
	if err := c.Cache.Get(ctx, request.NamespacedName, workload); err != nil || !hasQuota(workload) {
		return ctrl.Result{}, client.IgnoreNotFound(
			err,
		)
	}
	states, _, err := unstructured.NestedSlice(workload.Object, "status", "admissionChecks")
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Workload %s: %w", request, err)
	}
	var result ctrl.Result
	changed := false
	for _, entry := range states {
		state, _ := entry.(map[string]any)
		ours, err := c.isOurs(ctx, state)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !ours {
			continue
		}
		job, err := c.jobOf(ctx, workload)
		if err != nil {
			return ctrl.Result{}, err
		}
		verdict, again := Judge(checkOf(state), job, c.After, c.Clock.Now())
		result.RequeueAfter = again
		if verdict.State != "" {
			c.set(state, verdict)
			changed = true
		}
	}
	if !changed {
		return result, nil
	}
	return result, c.patch(ctx, workload, states, "status", "admissionChecks")
}

// set writes a verdict into a state of a Workload.
func (c *Controller) set(state map[string]any, verdict Verdict) {
	state["state"], state["message"] = verdict.State, verdict.Message
	state["lastTransitionTime"] = metav1.NewTime(c.Clock.Now()).UTC().Format(time.RFC3339)
	delete(state, "requeueAfterSeconds")
}

// patch writes one field of a status, unless the object has changed since it was read.
func (c *Controller) patch(ctx context.Context, read *unstructured.Unstructured, value any, path ...string) error {
	next := read.DeepCopy()
	if err := unstructured.SetNestedField(next.Object, value, path...); err != nil {
		return fmt.Errorf("writing %s %s: %w", read.GetKind(), client.ObjectKeyFromObject(read), err)
	}
	base := client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
	if err := c.Client.Status().Patch(ctx, next, base); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of %s %s: %w", read.GetKind(), client.ObjectKeyFromObject(read), err)
	}
	return nil
}

// isOurs reports whether the AdmissionCheck of a state is Lockstep's.
func (c *Controller) isOurs(ctx context.Context, state map[string]any) (bool, error) {
	name, _ := state["name"].(string)
	check := object("AdmissionCheck")
	if err := c.Cache.Get(ctx, client.ObjectKey{Name: name}, check); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting AdmissionCheck %s: %w", name, err)
	}
	return isOurs(check), nil
}

// jobOf returns the TrainJob of a Workload; nil if it is not Lockstep's.
func (c *Controller) jobOf(ctx context.Context, workload client.Object) (*trainerv1alpha1.TrainJob, error) {
	owner := metav1.GetControllerOf(workload)
	if owner == nil || owner.Kind != plan.TrainJobKind().Kind {
		return nil, nil //nolint:nilnil // other jobs are a normal answer
	}
	job := &trainerv1alpha1.TrainJob{}
	key := client.ObjectKey{Namespace: workload.GetNamespace(), Name: owner.Name}
	if err := c.Cache.Get(ctx, key, job); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting TrainJob %s: %w", key, err)
	}
	if !ownership.Controls(job, plan.TrainJobKind(), workload) || !c.Class.Handles(job) {
		return nil, nil //nolint:nilnil // other jobs are a normal answer
	}
	return job, nil
}

// workloadsOf returns the Workloads of a TrainJob.
func (c *Controller) workloadsOf(ctx context.Context, job client.Object) []reconcile.Request {
	return c.list(ctx, client.InNamespace(job.GetNamespace()), client.MatchingLabels{labelJobUID: string(job.GetUID())})
}

// allWorkloads returns all Workloads, for a check that is new, or becomes Lockstep's.
func (c *Controller) allWorkloads(ctx context.Context, check client.Object) []reconcile.Request {
	if found, ok := check.(*unstructured.Unstructured); !ok || !isOurs(found) {
		return nil
	}
	return c.list(ctx)
}

func (c *Controller) list(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(group().WithKind("WorkloadList"))
	if err := c.Cache.List(ctx, found, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing Kueue's Workloads failed")
		return nil
	}
	requests := make([]reconcile.Request, len(found.Items))
	for i := range found.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&found.Items[i])
	}
	return requests
}

func object(kind string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(group().WithKind(kind))
	return made
}

func isOurs(check *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(check.Object, "spec", "controllerName")
	return name == controllerName
}

// hasQuota reports whether Kueue has reserved quota for a Workload, and does not evict it.
func hasQuota(workload *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
	holds := map[any]bool{}
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		holds[condition["type"]] = condition["status"] == string(metav1.ConditionTrue)
	}
	return holds["QuotaReserved"] && !holds["Evicted"] && !holds["Finished"]
}

func checkOf(state map[string]any) Check {
	check := Check{}
	check.State, _ = state["state"].(string)
	text, _ := state["lastTransitionTime"].(string)
	check.Since, _ = time.Parse(time.RFC3339, text) // the zero time of a state that has none is long ago
	return check
}
