package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// turn holds the fields of a TrainJob that decide since when it waits.
type turn struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
		Labels      map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Suspend *bool `json:"suspend"`
	} `json:"spec"`
}

// turnOf reads a TrainJob, and returns false for one that cannot be read.
func turnOf(raw []byte) (turn, bool) {
	var t turn
	return t, len(raw) > 0 && json.Unmarshal(raw, &t) == nil
}

func (t turn) suspended() bool { return ptr.Deref(t.Spec.Suspend, false) }

// queue is the queue in which Kueue has the job; empty for none.
func (t turn) queue() string { return t.Metadata.Labels[plan.KueueQueueLabel] }

// takeTurn writes since when a job waits for its turn, where that is not since its creation. No other code writes it.
func (d *Defaulter) takeTurn(ctx context.Context, user authenticationv1.UserInfo, old, next []byte) ([]byte, error) {
	now, ok := turnOf(next)
	if !ok {
		return next, nil
	}
	before, _ := turnOf(old)
	since := before.Metadata.Annotations[topology.AnnotationJobQueuedAt]
	anew, err := d.queuesAnew(ctx, user, before, now)
	if err != nil {
		return nil, err
	}
	if anew {
		since = d.Clock.Now().UTC().Format(time.RFC3339)
	}
	if now.Metadata.Annotations[topology.AnnotationJobQueuedAt] == since {
		return next, nil
	}
	return annotate(next, topology.AnnotationJobQueuedAt, since)
}

// queuesAnew reports whether a job waits from this change on: otherwise a user could create suspended jobs in advance
// and resume one when it needs to be first. Time in suspension counts as waiting only if the job was in one queue of
// Kueue's all the time, and a controller resumes it. The label must have been there before, because any user that may
// resume every job (Argo CD, another operator) passes for a controller.
func (d *Defaulter) queuesAnew(ctx context.Context, user authenticationv1.UserInfo, before, now turn) (bool, error) {
	switch {
	case !before.suspended():
		return false, nil
	case before.queue() != now.queue(): // it may have named a queue that does not exist
		return true, nil
	case now.suspended():
		return false, nil
	case before.queue() == "":
		return true, nil
	}
	controls, err := d.controls(ctx, user)
	return !controls, err
}

// controls reports whether a user may write the status of all TrainJobs, as controllers of TrainJobs may.
func (d *Defaulter) controls(ctx context.Context, user authenticationv1.UserInfo) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: trainerv1alpha1.Group, Resource: "trainjobs", Subresource: "status", Verb: "update",
		},
	}}
	if err := d.Reviews.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking whether %s may write the status of TrainJobs: %w", user.Username, err)
	}
	return review.Status.Allowed, nil
}

// Reviews creates SubjectAccessReviews, which the API server answers.
type Reviews interface {
	Create(ctx context.Context, review client.Object, options ...client.CreateOption) error
}

// annotate sets an annotation of an object, or removes it if the value is empty. Other fields are preserved.
func annotate(raw []byte, key, value string) ([]byte, error) {
	tree, err := parse(raw)
	if err != nil {
		return nil, err
	}
	metadata := object(tree, "metadata")
	annotations := object(metadata, "annotations")
	switch {
	case value == "":
		delete(annotations, key)
	case annotations == nil:
		metadata["annotations"] = map[string]any{key: value}
	default:
		annotations[key] = value
	}
	out, err := json.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("printing the TrainJob: %w", err)
	}
	return out, nil
}
