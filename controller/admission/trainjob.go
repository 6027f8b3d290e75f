package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/nodefit"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/podsecurity"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/servedkinds"
)

// Runtimes finds the runtime of a job: the current one, or the job's own copy where it has one. The error is a
// resolve.ErrMissing or a resolve.ErrUnknown if the job is to be refused, and any other if that is unknown.
type Runtimes interface {
	Current(ctx context.Context, job *trainerv1alpha1.TrainJob) (resolve.Found, error)
	Find(ctx context.Context, job *trainerv1alpha1.TrainJob) (resolve.Found, error)
}

// Verdict is the decision about a request.
type Verdict struct {
	// Refusal is the reason why the object is refused, on one line; nil if it is admitted.
	Refusal error
	// Warnings are shown to the user either way.
	Warnings []string
}

// Validator decides which TrainJobs are admitted.
type Validator struct {
	// Class are the jobs of the controller. Kubeflow Trainer judges the others where Class has the choice class.Chosen;
	// else all jobs of its namespaces are judged, whatever their manager.
	Class    class.Class
	Runtimes Runtimes
	// JobSets reads the JobSet of a job whose patches change.
	JobSets client.Reader
	// Live reads the priority classes that jobs name, and device classes.
	Live client.Reader
	// Nodes finds pods that no node can hold.
	Nodes nodefit.Nodes
	// Levels finds pods that their namespace's Pod Security level refuses.
	Levels podsecurity.Levels
	// Kinds finds kinds that pods create and that are not served.
	Kinds servedkinds.Kinds
	// Offers returns the GPUs of the nodes, for jobs with automatic resources; nil for a Validator without nodes.
	Offers Offers
	// Options must be those of the reconciler. A job that was rendered already is judged by the decisions of that
	// moment.
	Options plan.Options
}

// Create judges a new TrainJob. The error is the reason why that was not possible.
func (v *Validator) Create(ctx context.Context, job *trainerv1alpha1.TrainJob) (Verdict, error) {
	found, err := v.Runtimes.Current(ctx, job)
	verdict, err := judgeFound(job, found, err)
	if err != nil || verdict.Refusal != nil {
		return verdict, err
	}
	if fault := unusable(found.Runtime); fault != nil {
		verdict.Refusal = fault
		return verdict, nil //nolint:nilerr // it is the verdict
	}
	if fault := v.checkFilled(job, found.Runtime); fault != nil {
		verdict.Refusal = fault
		return verdict, nil //nolint:nilerr // it is the verdict
	}
	draft := plan.NewDraft(job, found.Runtime, v.Options)
	if faults := faultsOf(job, found.Runtime, draft); len(faults) > 0 {
		verdict.Refusal = faults.ToAggregate()
		return verdict, nil
	}
	fault, err := v.checkPriorityClasses(ctx, job, found.Runtime)
	if fault != nil {
		verdict.Refusal = fault
	}
	if err != nil || fault != nil {
		return verdict, err
	}
	planned, err := draft.Render()
	if err != nil {
		verdict.Refusal = err
		return verdict, nil //nolint:nilerr // it is the verdict
	}
	verdict.Warnings = append(verdict.Warnings, planned.Warnings...)
	verdict.Warnings = append(verdict.Warnings, v.Kinds.Missing(planned.Creates)...)
	verdict.Warnings = append(verdict.Warnings, longNames(planned.JobSet)...)
	verdict.Warnings = append(verdict.Warnings, v.unfit(ctx, planned.JobSet)...)
	verdict.Warnings = append(verdict.Warnings, v.refused(ctx, job.Namespace, planned.JobSet)...)
	return verdict, nil
}

// Update judges a change of a TrainJob. Only new faults are refused: a job that is at fault already, maybe by a younger
// rule, or whose runtime was deleted, can still be suspended, relabeled and released.
func (v *Validator) Update(ctx context.Context, old, next *trainerv1alpha1.TrainJob) (Verdict, error) {
	respecified := !equality.Semantic.DeepEqual(lasting(old), lasting(next))
	rewished := !maps.Equal(wishes(old), wishes(next))
	if next.DeletionTimestamp != nil {
		return Verdict{Refusal: v.checkShapeChange(ctx, old, next, plan.Runtime{}).ToAggregate()}, nil
	}
	faults := v.checkSwitchesChange(ctx, old, next)
	if !respecified && !rewished {
		return Verdict{Refusal: faults.ToAggregate()}, nil
	}
	found, err := v.Runtimes.Find(ctx, next)
	// After a failure the runtime is zero: only the job's own priority class is compared, and a change of the spec is
	// refused below anyway.
	faults = append(v.checkShapeChange(ctx, old, next, found.Runtime), faults...)
	verdict, err := judgeFound(next, found, err)
	switch {
	case err == nil && verdict.Refusal == nil:
		before, options := map[string]bool{}, found.Options(v.Options)
		for _, fault := range faultsOf(old, found.Runtime, plan.NewDraft(old, found.Runtime, options)) {
			before[fault.Error()] = true
		}
		draft := plan.NewDraft(next, found.Runtime, options)
		for _, fault := range faultsOf(next, found.Runtime, draft) {
			if !before[fault.Error()] {
				faults = append(faults, fault)
			}
		}
		verdict.Warnings = append(verdict.Warnings, v.unfitLater(ctx, next, draft)...)
		if priorityChanged(old, next, found.Runtime) {
			var missing *field.Error
			if missing, err = v.checkPriorityClasses(ctx, next, found.Runtime); missing != nil {
				faults = append(faults, missing)
			}
		}
	case !respecified:
		// Only annotations or the queue's label changed. A job whose runtime was deleted or cannot be read may change
		// those.
		err, verdict.Refusal = nil, nil
	}
	verdict.Refusal = utilerrors.NewAggregate([]error{verdict.Refusal, faults.ToAggregate()})
	return verdict, err
}

// faultsOf returns the faults of a job on a runtime: the planner's refusals, and usage that Kueue would not count. Jobs
// that were admitted before that rule continue.
func faultsOf(job *trainerv1alpha1.TrainJob, runtime plan.Runtime, draft *plan.Draft) field.ErrorList {
	faults := slices.Clone(draft.Faults())
	if fault := plan.Uncounted(job, runtime); fault != nil {
		faults = append(faults, fault)
	}
	return faults
}

// unusable returns the fault of a runtime for any job that uses it. The runtime may be older than that rule, or have
// been stored without the webhook.
func unusable(runtime plan.Runtime) *field.Error {
	spec := runtime.Spec.DeepCopy()
	for i := range spec.Template.Spec.ReplicatedJobs {
		replicas := &spec.Template.Spec.ReplicatedJobs[i].Replicas
		*replicas = max(1, *replicas) // one of a file has not got the CRD's default
	}
	faults := CheckRuntime(metav1.ObjectMeta{Name: runtime.Name, Annotations: runtime.Annotations}, *spec)
	if len(faults) == 0 {
		return nil
	}
	return field.Invalid(
		field.NewPath("spec", "runtimeRef"),
		runtime.Name,
		"this runtime cannot be used: "+faults.ToAggregate().Error(),
	)
}

// judgeFound refuses a job whose runtime is missing or of an unknown kind, and warns of a deprecated one. It returns
// any other error of the look-up, wrapped.
func judgeFound(job *trainerv1alpha1.TrainJob, found resolve.Found, err error) (Verdict, error) {
	kind := resolve.ReferenceOf(job).Kind
	switch {
	case errors.Is(err, resolve.ErrUnknown):
		return Verdict{Refusal: err}, nil
	case errors.Is(err, resolve.ErrMissing):
		return Verdict{Refusal: field.Invalid(
			field.NewPath("spec", "runtimeRef"), job.Spec.RuntimeRef.Name,
			fmt.Sprintf("%v: specified %s must be created before the TrainJob is created", err, lowerFirst(kind)))}, nil
	case err != nil:
		return Verdict{}, fmt.Errorf("finding the runtime of TrainJob %s: %w", job.Name, err)
	}
	var verdict Verdict
	if found.Deprecated && found.Runtime.Kind == trainerv1alpha1.ClusterTrainingRuntimeKind {
		verdict.Warnings = []string{"Referenced " + deprecation(found.Runtime.Name)}
	}
	return verdict, nil
}

// deprecation warns of a runtime's removal.
func deprecation(name string) string {
	return fmt.Sprintf("ClusterTrainingRuntime %q is deprecated and will be removed in a future release of Kubeflow "+
		"Trainer. See runtime deprecation policy: https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html"+
		"#runtime-deprecation-policy", name)
}

// longNames warns of pods' names that are too long for the JobSet controller. It is no refusal, because upstream lets
// the job in.
func longNames(jobSet *jobsetv1alpha2.JobSet) []string {
	longest := ""
	for _, job := range jobSet.Spec.ReplicatedJobs {
		last := fmt.Sprintf(
			"%s-%s-%d-%d",
			jobSet.Name,
			job.Name,
			max(1, job.Replicas)-1,
			*job.Template.Spec.Parallelism-1,
		)
		if len(last) > len(longest) {
			longest = last
		}
	}
	excess := len(longest) - validation.DNS1123LabelMaxLength
	if excess <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("metadata.name: no pods can be made, because pod %s would have a name of more than %d "+
		"characters; shorten the job's name by %d", longest, validation.DNS1123LabelMaxLength, excess)}
}

// lasting returns the spec without the field that is meant to change: suspend.
func lasting(job *trainerv1alpha1.TrainJob) trainerv1alpha1.TrainJobSpec {
	spec := job.Spec
	spec.Suspend = nil
	return spec
}

// wishes are the annotations that the plan reads, and the label that it does.
func wishes(job *trainerv1alpha1.TrainJob) map[string]string {
	own := map[string]string{plan.KueueQueueLabel: job.Labels[plan.KueueQueueLabel]}
	for key, value := range job.Annotations {
		if strings.HasPrefix(key, "lockstep.dev/") {
			own[key] = value
		}
	}
	return own
}

func lowerFirst(text string) string {
	return strings.ToLower(text[:1]) + text[1:]
}
