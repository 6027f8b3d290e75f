package resolve

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

const (
	// remembered bounds the number of parsed runtimes in memory.
	remembered = 512
	// largest is the size of the text of a runtime that is retained parsed, in bytes. Those of usual size take some
	// KiB.
	largest = 256 << 10
)

// Resolver finds runtimes. It is safe for concurrent use.
type Resolver struct {
	// cache answers from memory, live from the API server.
	cache, live client.Reader
	// namespace is the controller's, in which frozen state is stored.
	namespace string
	// runtimes holds parsed runtimes, by the SHA-256 of the text.
	runtimes *lru.Cache
}

// New returns a Resolver that reads runtimes, JobSets and frozen state from cache, and asks live where that does not
// answer. Frozen state is in namespace.
func New(cache, live client.Reader, namespace string) *Resolver {
	return &Resolver{cache: cache, live: live, namespace: namespace, runtimes: lru.New(remembered)}
}

// Found is a runtime and its source.
type Found struct {
	// Runtime is the input of plans.
	Runtime plan.Runtime
	// Deprecated is set if the runtime's administrators have deprecated it.
	Deprecated bool
	// Frozen is the state that Runtime was read from; nil for a job without frozen state.
	Frozen *statev1alpha1.FrozenTrainJob
	// Decisions are those of the job's first rendering; nil for a job that this controller never rendered and whose
	// pods do not exist.
	Decisions *statev1alpha1.Decisions
	// Adopted is set if the job has a JobSet and no frozen state: an earlier version or another controller has rendered
	// it.
	Adopted bool
	// Live is the runtime to freeze, whole; nil with Frozen.
	Live client.Object
	// Disbelieved is the reason why an existing copy of the runtime was not adopted; empty if none was refused.
	Disbelieved string
}

// Options are the options under which the job is planned: those of today, or the decisions of its first rendering.
func (f Found) Options(today plan.Options) plan.Options {
	if f.Decisions == nil {
		return today
	}
	return today.Under(*f.Decisions)
}

// is reports whether the runtime is the one that is referred to.
func (f Found) is(ref Reference) bool {
	return f.Runtime.Kind == ref.Kind && f.Runtime.Name == ref.Key.Name
}

// Find returns the runtime by which a job is validated and rendered: the frozen one; else, for a job with a JobSet, the
// copy that a controller made; else the runtime in the cluster. The error is ErrMissing, ErrUnknown, ErrFrozen or one
// of the API server's.
func (r *Resolver) Find(ctx context.Context, job *trainerv1alpha1.TrainJob) (Found, error) {
	ref, err := known(job)
	if err != nil {
		return Found{}, err
	}
	if found, ok, err := r.frozen(ctx, job, ref); ok || err != nil {
		return found, err
	}
	if found, ok, err := r.adopt(ctx, job, ref); ok || err != nil {
		return found, err
	}
	return r.Current(ctx, job)
}

// Current returns the runtime in the cluster, by which a job is validated when it is created. The error is as of Find,
// but for ErrFrozen.
func (r *Resolver) Current(ctx context.Context, job *trainerv1alpha1.TrainJob) (Found, error) {
	ref, err := known(job)
	if err != nil {
		return Found{}, err
	}
	object := blank(ref)
	if err := r.read(ctx, ref, object); err != nil {
		return Found{}, err
	}
	return found(ref, object), nil
}

// Cached returns the runtime from the cache only, for callers that can wait until the cache has it. The error is as of
// Current.
func (r *Resolver) Cached(ctx context.Context, job *trainerv1alpha1.TrainJob) (Found, error) {
	ref, err := known(job)
	if err != nil {
		return Found{}, err
	}
	object := blank(ref)
	if err := r.cache.Get(ctx, ref.Key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return Found{}, fmt.Errorf("%s: %w", ref.name(), ErrMissing)
		}
		return Found{}, fmt.Errorf("getting %s: %w", ref.name(), err)
	}
	return found(ref, object), nil
}

// known is the job's reference if it is to a kind of runtime that there is.
func known(job *trainerv1alpha1.TrainJob) (Reference, error) {
	ref := ReferenceOf(job)
	if ref.Group != trainerv1alpha1.Group || blank(ref) == nil {
		return ref, fmt.Errorf("%w: %s.%s", ErrUnknown, ref.Kind, ref.Group)
	}
	return ref, nil
}

// read reads a runtime from the cache, and past it if it is not there: a runtime and its first job are often created
// with one command.
func (r *Resolver) read(ctx context.Context, ref Reference, into client.Object) error {
	err := r.cache.Get(ctx, ref.Key, into)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, ref.Key, into)
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", ref.name(), ErrMissing)
	}
	if err != nil {
		return fmt.Errorf("getting %s: %w", ref.name(), err)
	}
	return nil
}

// blank is an empty runtime of the reference's kind; nil for a kind that is not known.
func blank(ref Reference) client.Object {
	switch ref.Kind {
	case trainerv1alpha1.TrainingRuntimeKind:
		return &trainerv1alpha1.TrainingRuntime{}
	case trainerv1alpha1.ClusterTrainingRuntimeKind:
		return &trainerv1alpha1.ClusterTrainingRuntime{}
	default:
		return nil
	}
}

func found(ref Reference, object client.Object) Found {
	result := Found{
		Runtime:    plan.Runtime{Kind: ref.Kind, Name: object.GetName(), Annotations: object.GetAnnotations()},
		Deprecated: object.GetLabels()[trainerv1alpha1.LabelSupport] == trainerv1alpha1.SupportDeprecated,
		Live:       object,
	}
	switch runtime := object.(type) {
	case *trainerv1alpha1.TrainingRuntime:
		result.Runtime.Spec = runtime.Spec
	case *trainerv1alpha1.ClusterTrainingRuntime:
		result.Runtime.Spec = runtime.Spec
	}
	return result
}

// decode reads JSON or YAML.
func decode(content []byte, into client.Object) error {
	return yaml.Unmarshal(content, into) //nolint:wrapcheck // the caller adds the context
}
