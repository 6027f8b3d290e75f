package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// Defaulter writes the defaults of TrainJobs, and chooses those that are Lockstep's where Kubeflow Trainer runs beside
// it.
type Defaulter struct {
	// Class are the jobs that this controller handles. Others are stored as they were sent.
	Class class.Class
	// Runtimes and Live, which reads past caches, find the labels that choose; both may be nil unless its Choice is
	// class.Chosen. Without Runtimes no resources are filled in.
	Runtimes Runtimes
	Live     client.Reader
	// Offers returns the GPUs of the nodes, for jobs with automatic resources.
	Offers Offers
	// Reviews determines whether a user is a controller.
	Reviews Reviews
	Clock   clock.PassiveClock
}

// Change is a request to store the TrainJob Next, as JSON, in the place of Old, which is empty on creation.
type Change struct {
	Namespace string
	User      authenticationv1.UserInfo
	Old, Next []byte
}

// Default returns the TrainJob to store in the place of change.Next. The error is an ErrMalformed, or that of a read on
// which the job's manager depends: a job for Lockstep must not be stored as another controller's.
func (d *Defaulter) Default(ctx context.Context, change Change) ([]byte, error) {
	next, handled, err := d.choose(ctx, change)
	if err != nil || !handled {
		return next, err
	}
	if next, err = d.fill(ctx, change, next); err != nil {
		return nil, err
	}
	next, err = Default(change.Old, next, d.Clock.Now())
	if err != nil {
		return nil, err
	}
	return d.takeTurn(ctx, change.User, change.Old, next)
}

// choose puts Lockstep's name on a new job that is to be Lockstep's. It returns the job, and whether Lockstep handles
// it.
func (d *Defaulter) choose(ctx context.Context, change Change) (next []byte, handled bool, err error) {
	next = change.Next
	if d.Class.Choice != class.Chosen {
		return next, true, nil
	}
	tree, err := parse(next)
	if err != nil {
		return nil, false, err
	}
	var job trainerv1alpha1.TrainJob
	if err := json.Unmarshal(next, &job); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	job.Namespace = change.Namespace
	spec, specified := tree["spec"].(map[string]any)
	if len(change.Old) > 0 || !specified || !d.Class.MayChoose(&job) {
		return next, d.Class.Handles(&job), nil
	}
	chosen, err := d.chooses(ctx, &job)
	if err != nil || !chosen {
		return next, false, err
	}
	spec["managedBy"] = trainerv1alpha1.LockstepManagedBy
	if next, err = json.Marshal(tree); err != nil {
		return nil, false, fmt.Errorf("printing the TrainJob: %w", err)
	}
	return next, true, nil
}

// chooses reports whether a new job, which names no other controller, is to be Lockstep's.
func (d *Defaulter) chooses(ctx context.Context, job *trainerv1alpha1.TrainJob) (bool, error) {
	var labels map[string]string
	found, err := d.Runtimes.Current(ctx, job)
	switch {
	case err == nil:
		labels = found.Live.GetLabels()
	case !errors.Is(err, resolve.ErrMissing) && !errors.Is(err, resolve.ErrUnknown):
		return false, fmt.Errorf("finding the runtime of TrainJob %s: %w", job.Name, err)
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := d.Live.Get(ctx, client.ObjectKey{Name: job.Namespace}, namespace); err != nil {
		return false, fmt.Errorf("getting Namespace %s: %w", job.Namespace, err)
	}
	return d.Class.Chooses(labels, namespace.Labels), nil
}
