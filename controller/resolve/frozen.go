package resolve

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

var errNoUID = errors.New("the TrainJob has no UID")

// FrozenKey names the frozen state of a job: the job's UID, in the controller's namespace. Users have no verb there,
// and an earlier job of the same name has another UID, so an object under this key belongs to the job and was written
// by the controller.
func (r *Resolver) FrozenKey(job *trainerv1alpha1.TrainJob) client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: string(job.UID)}
}

// Freeze returns the state to store for a job that was planned with found, under these options. It is not written yet.
func (r *Resolver) Freeze(
	job *trainerv1alpha1.TrainJob, found Found, options plan.Options, planned plan.Plan,
) (*statev1alpha1.FrozenTrainJob, error) {
	if job.UID == "" {
		return nil, fmt.Errorf("freezing %s: %w", client.ObjectKeyFromObject(job), errNoUID)
	}
	source, ok := found.Live.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("copying runtime %s: not an API object", found.Live.GetName())
	}
	// A typed client leaves the kind out, and managed fields are no part of a runtime.
	source.GetObjectKind().SetGroupVersionKind(trainerv1alpha1.GroupVersion().WithKind(ReferenceOf(job).Kind))
	source.SetManagedFields(nil)
	content, err := json.Marshal(source)
	if err != nil {
		return nil, fmt.Errorf("encoding runtime %s: %w", source.GetName(), err)
	}
	rendering, err := planned.Rendering()
	if err != nil {
		return nil, fmt.Errorf("freezing TrainJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	key := r.FrozenKey(job)
	return &statev1alpha1.FrozenTrainJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: statev1alpha1.FrozenTrainJobSpec{
			TrainJob:  statev1alpha1.TrainJobReference{Namespace: job.Namespace, Name: job.Name, UID: job.UID},
			Runtime:   runtime.RawExtension{Raw: content},
			Decisions: options.Decide(planned),
			Rendering: rendering,
		},
	}, nil
}

// frozen reads the job's frozen state; ok is false if there is none. A miss in the cache is confirmed live: a cache
// that lags would let the job start with today's runtime.
func (r *Resolver) frozen(
	ctx context.Context, job *trainerv1alpha1.TrainJob, ref Reference,
) (result Found, ok bool, err error) {
	state := &statev1alpha1.FrozenTrainJob{}
	err = r.cache.Get(ctx, r.FrozenKey(job), state)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, r.FrozenKey(job), state)
	}
	switch {
	case apierrors.IsNotFound(err):
		return Found{}, false, nil
	case err != nil:
		return Found{}, false, fmt.Errorf(
			"getting the frozen state of TrainJob %s/%s: %w",
			job.Namespace,
			job.Name,
			err,
		)
	}
	if result, err = r.parse(state.Spec.Runtime.Raw, ref); err != nil {
		return Found{}, false, fmt.Errorf(
			"%w: delete FrozenTrainJob %s/%s, and ConfigMap %s/%s too to take the runtime as it is now",
			err,
			state.Namespace,
			state.Name,
			job.Namespace,
			CopyName(job),
		)
	}
	result.Frozen, result.Decisions, result.Live = state, &state.Spec.Decisions, nil
	return result, true, nil
}

// parse decodes a runtime from JSON or YAML and checks that it is the one that ref names. Jobs of one runtime share the
// result.
func (r *Resolver) parse(content []byte, ref Reference) (Found, error) {
	digest := sha256.Sum256(content)
	if parsed, known := r.runtimes.Get(digest); known {
		if result, ok := parsed.(Found); ok && result.is(ref) {
			return result, nil
		}
	}
	object := blank(ref)
	if err := decode(content, object); err != nil {
		return Found{}, fmt.Errorf("%w: decoding: %w", ErrFrozen, err)
	}
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Kind != ref.Kind || kind.Group != ref.Group || object.GetName() != ref.Key.Name {
		return Found{}, fmt.Errorf("%w: it is of %s %s, and the job refers to %s",
			ErrFrozen, kind.Kind, object.GetName(), ref.name())
	}
	result := found(ref, object)
	if len(content) <= largest {
		r.runtimes.Add(digest, result)
	}
	return result, nil
}
