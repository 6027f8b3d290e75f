package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
)

// The paths of the webhooks, which are upstream's.
const (
	DefaultTrainJobPath        = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob"
	ValidateTrainJobPath       = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
	ValidateRuntimePath        = "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime"
	ValidateClusterRuntimePath = "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
)

// Register puts the webhooks on a server. They get objects of v2alpha1 as well: the version is not evaluated.
func Register(server webhook.Server, validator *Validator, defaulter *Defaulter) {
	handlers := handlers(validator, defaulter)
	for _, path := range []string{
		DefaultTrainJobPath, ValidateTrainJobPath, ValidateRuntimePath, ValidateClusterRuntimePath,
	} {
		server.Register(path, handlers[path])
	}
}

// handlers are the webhooks by path. A panic in one is answered with an error: the request fails, the process
// continues.
func handlers(validator *Validator, defaulter *Defaulter) map[string]*ctrladmission.Webhook {
	handlers := map[string]*ctrladmission.Webhook{}
	for path, handle := range map[string]ctrladmission.HandlerFunc{
		DefaultTrainJobPath: func(ctx context.Context, request ctrladmission.Request) ctrladmission.Response {
			return defaultTrainJob(ctx, request, defaulter)
		},
		ValidateTrainJobPath:       judge(validator.Judge),
		ValidateRuntimePath:        judge(validator.judgeRuntime),
		ValidateClusterRuntimePath: judge(validator.judgeClusterRuntime),
	} {
		handlers[path] = (&ctrladmission.Webhook{Handler: validator.elsewhere(handle)}).WithRecoverPanic(true)
	}
	return handlers
}

// elsewhere lets objects of namespaces that are not the controller's pass unchanged: a webhook configuration that was
// not rendered for the same namespaces must not block other controllers.
func (v *Validator) elsewhere(handle ctrladmission.HandlerFunc) ctrladmission.HandlerFunc {
	return func(ctx context.Context, request ctrladmission.Request) ctrladmission.Response {
		if request.Namespace != "" && !v.Class.Serves(request.Namespace) {
			return ctrladmission.Allowed("")
		}
		return handle(ctx, request)
	}
}

func defaultTrainJob(
	ctx context.Context, request ctrladmission.Request, defaulter *Defaulter,
) ctrladmission.Response {
	if !writes(request) {
		return ctrladmission.Allowed("")
	}
	out, err := defaulter.Default(ctx, Change{
		Namespace: request.Namespace, User: request.UserInfo, Old: request.OldObject.Raw, Next: request.Object.Raw,
	})
	switch {
	case err == nil:
	case leaving(request.Object.Raw):
		return ctrladmission.Allowed("")
	case errors.Is(err, ErrMalformed):
		return ctrladmission.Errored(http.StatusBadRequest, err)
	default:
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	return ctrladmission.PatchResponseFromRaw(request.Object.Raw, out)
}

// judgment judges next, which is to take the place of old, nil if it is new.
type judgment[T any] func(ctx context.Context, old, next *T) (Verdict, error)

// judge is the webhook of a judgment. A refusal is a plain 403 with the faults on one line, as upstream's is.
func judge[T any](judgment judgment[T]) ctrladmission.HandlerFunc {
	return func(ctx context.Context, request ctrladmission.Request) ctrladmission.Response {
		if !writes(request) {
			return ctrladmission.Allowed("")
		}
		var next T
		if err := json.Unmarshal(request.Object.Raw, &next); err != nil {
			if leaving(request.Object.Raw) {
				return ctrladmission.Allowed("")
			}
			return ctrladmission.Errored(
				http.StatusBadRequest,
				fmt.Errorf("parsing the %s: %w", request.Kind.Kind, err),
			)
		}
		var old *T
		if request.Operation == admissionv1.Update {
			old = new(T)
			// An old object that cannot be read is judged as far as it could be: it must be possible to mend it.
			_ = json.Unmarshal(request.OldObject.Raw, old)
		}
		verdict, err := judgment(ctx, old, &next)
		switch {
		case err != nil:
			return ctrladmission.Errored(http.StatusInternalServerError, err).WithWarnings(verdict.Warnings...)
		case verdict.Refusal != nil:
			return ctrladmission.Denied(verdict.Refusal.Error()).WithWarnings(verdict.Warnings...)
		}
		return ctrladmission.Allowed("").WithWarnings(verdict.Warnings...)
	}
}

// Judge judges a TrainJob, old nil if it is new. One that this controller does not handle is admitted.
func (v *Validator) Judge(ctx context.Context, old, next *trainerv1alpha1.TrainJob) (Verdict, error) {
	if v.Class.Choice == class.Chosen && !v.Class.Handles(next) {
		return Verdict{}, nil
	}
	if old == nil {
		return v.Create(ctx, next)
	}
	return v.Update(ctx, old, next)
}

func (v *Validator) judgeRuntime(_ context.Context, old, next *trainerv1alpha1.TrainingRuntime) (Verdict, error) {
	if old != nil || v.leaves(next.Labels) {
		return Verdict{}, nil
	}
	return JudgeRuntime(next), nil
}

func (v *Validator) judgeClusterRuntime(
	_ context.Context, old, next *trainerv1alpha1.ClusterTrainingRuntime,
) (Verdict, error) {
	if v.leaves(next.Labels) {
		return Verdict{}, nil
	}
	return JudgeClusterRuntime(old, next), nil
}

// leaves reports whether a runtime with such labels is Kubeflow Trainer's to judge, which works beside this controller.
// A job of a chosen namespace may use it all the same: then the job is refused.
func (v *Validator) leaves(labels map[string]string) bool {
	return v.Class.Choice == class.Chosen && !v.Class.Chooses(labels, nil)
}

// writes reports whether a request creates or updates the object itself.
func writes(request ctrladmission.Request) bool {
	return request.SubResource == "" &&
		(request.Operation == admissionv1.Create || request.Operation == admissionv1.Update)
}

// leaving reports whether an object is being deleted: nothing may block the removal of its finalizers.
func leaving(raw []byte) bool {
	var object struct {
		Metadata struct {
			DeletionTimestamp any `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	return json.Unmarshal(raw, &object) == nil && object.Metadata.DeletionTimestamp != nil
}
