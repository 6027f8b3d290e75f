package resolve

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

const (
	// remembered is how many snapshots are known by their version, and how many different runtimes are kept parsed: jobs of one
	// runtime share it.
	remembered, kept = 65536, 512
	// largest is how long the text of a runtime may be that is kept parsed, in bytes. Those of usual size take some KiB.
	largest = 256 << 10
)

// Resolver finds runtimes. It is safe for concurrent use.
type Resolver struct {
	// cache answers from memory, live from the API server.
	cache, live client.Reader
	// texts holds the hash of a snapshot's text by the snapshot's identity, runtimes what was parsed from a text.
	texts, runtimes *lru.Cache
}

// New returns a Resolver that reads from cache, which holds runtimes whole and of ConfigMaps only metadata, and asks live
// where that does not answer.
func New(cache, live client.Reader) *Resolver {
	return &Resolver{cache: cache, live: live, texts: lru.New(remembered), runtimes: lru.New(kept)}
}

// Found is a runtime and where it comes from.
type Found struct {
	// Runtime is what plans are made of.
	Runtime plan.Runtime
	// Deprecated says that the runtime's administrators want it used no more.
	Deprecated bool
	// Snapshot says that this is the job's own copy. Live is the runtime as it is in the cluster otherwise.
	Snapshot bool
	Live     client.Object
}

// Find is the runtime by which a job is judged and rendered: its snapshot, and before there is one the runtime as it is. The
// error is ErrMissing, ErrUnknown, ErrSnapshot or one of the API server's.
func (r *Resolver) Find(ctx context.Context, job *trainerv1alpha1.TrainJob) (Found, error) {
	ref, err := known(job)
	if err != nil {
		return Found{}, err
	}
	if found, ok, err := r.snapshot(ctx, job, ref); ok || err != nil {
		return found, err
	}
	return r.Current(ctx, job)
}

// Current is the runtime as it is now. A job that is being created is judged by it: what snapshot there is by its name is an
// earlier job's. The error is as of Find, but for ErrSnapshot.
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

// Cached is the runtime as far as the cache knows it, for questions that can wait until it does. The error is as of Current.
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
