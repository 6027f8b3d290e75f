package trainjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

var (
	// ErrRuntimeMissing indicates that a TrainJob names a runtime that does not exist (yet).
	ErrRuntimeMissing = errors.New("the runtime does not exist")
	// ErrRuntimeUnknown indicates that a TrainJob names a kind of runtime that this controller does not know.
	ErrRuntimeUnknown = errors.New("unsupported runtime")
)

// reference is a TrainJob's runtime with the API's defaults filled in.
type reference struct {
	group, kind string
	key         types.NamespacedName
}

func referenceOf(job *trainerv1alpha1.TrainJob) reference {
	ref := job.Spec.RuntimeRef
	result := reference{
		group: trainerv1alpha1.Group,
		kind:  trainerv1alpha1.ClusterTrainingRuntimeKind,
		key:   types.NamespacedName{Name: ref.Name},
	}
	if ref.APIGroup != nil {
		result.group = cmp.Or(*ref.APIGroup, result.group)
	}
	if ref.Kind != nil {
		result.kind = cmp.Or(*ref.Kind, result.kind)
	}
	if result.kind == trainerv1alpha1.TrainingRuntimeKind {
		result.key.Namespace = job.Namespace
	}
	return result
}

// runtime reads the job's runtime.
func (r *Reconciler) runtime(ctx context.Context, job *trainerv1alpha1.TrainJob) (plan.Runtime, error) {
	ref := referenceOf(job)
	if ref.group != trainerv1alpha1.Group {
		return plan.Runtime{}, fmt.Errorf("%w: %s.%s", ErrRuntimeUnknown, ref.kind, ref.group)
	}
	switch ref.kind {
	case trainerv1alpha1.TrainingRuntimeKind:
		var found trainerv1alpha1.TrainingRuntime
		if err := r.read(ctx, ref, &found); err != nil {
			return plan.Runtime{}, err
		}
		return plan.Runtime{Kind: ref.kind, Name: found.Name, Annotations: found.Annotations, Spec: found.Spec}, nil
	case trainerv1alpha1.ClusterTrainingRuntimeKind:
		var found trainerv1alpha1.ClusterTrainingRuntime
		if err := r.read(ctx, ref, &found); err != nil {
			return plan.Runtime{}, err
		}
		return plan.Runtime{Kind: ref.kind, Name: found.Name, Annotations: found.Annotations, Spec: found.Spec}, nil
	default:
		return plan.Runtime{}, fmt.Errorf("%w: %s.%s", ErrRuntimeUnknown, ref.kind, ref.group)
	}
}

// read reads a runtime from the cache, and past it if it is not there: a runtime and its first job are often created
// with one command.
func (r *Reconciler) read(ctx context.Context, ref reference, into client.Object) error {
	err := r.Client.Get(ctx, ref.key, into)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, ref.key, into)
	}
	name := strings.TrimPrefix(ref.key.String(), "/")
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s: %w", ref.kind, name, ErrRuntimeMissing)
	}
	if err != nil {
		return fmt.Errorf("getting %s %s: %w", ref.kind, name, err)
	}
	return nil
}

// String is the reference as an index key. A TrainingRuntime's has its namespace.
func (ref reference) String() string {
	return ref.kind + "." + ref.group + "/" + ref.key.String()
}
