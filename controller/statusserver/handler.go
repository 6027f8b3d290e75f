package statusserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/plan"
)

const (
	// patience is the longest time of one request, from its first byte to its answer.
	patience = 10 * time.Second
	// asking is the time for which a request may wait for the API server. The rest of patience is for the answer that
	// it timed out.
	asking = 8 * time.Second
	// crowded is the client's retry delay if too many proofs are under way, or the API server is too busy for one.
	crowded = time.Second
)

// handler answers requests.
type handler struct {
	cached     client.Reader
	clock      clock.PassiveClock
	class      class.Class
	identities *identities
	limits     limits
	held       *held
	requests   *prometheus.CounterVec
	reports    *prometheus.CounterVec
}

// ServeHTTP answers one request, in any case.
func (h *handler) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	result := h.safely(writer, request)
	h.requests.WithLabelValues(strconv.Itoa(result.code)).Inc()
	result.send(writer)
}

// safely makes an answer of a panic: one unforeseen report must not take all others with it.
func (h *handler) safely(writer http.ResponseWriter, request *http.Request) (result answer) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(request.Context()).Error(nil, "Panic while answering a report", "cause", cause)
			result = internal()
		}
	}()
	return h.handle(writer, request)
}

func (h *handler) handle(writer http.ResponseWriter, request *http.Request) answer {
	key, ok := jobOf(request)
	if !ok {
		return notFound("Not found")
	}
	if !h.class.Serves(key.Namespace) {
		return forbidden()
	}
	ctx, cancel := context.WithTimeout(request.Context(), asking)
	defer cancel()
	job, pod, refused := h.identify(ctx, request, key)
	if refused != nil {
		return *refused
	}
	if !h.held.admit(job) {
		return tooMany(time.Second / jobPerSecond)
	}
	body, err := readReport(writer, request)
	switch {
	case errors.Is(err, errTooLarge):
		return tooLarge()
	case err != nil:
		return invalid("Invalid payload")
	case body.TrainerStatus == nil:
		return accepted(body)
	}
	if err = Validate(job.Name, body.TrainerStatus); err != nil {
		return refusal(ctx, err)
	}
	became := h.held.offer(job, report{status: body.TrainerStatus, by: pod, at: h.clock.Now()})
	h.reports.WithLabelValues(string(became)).Inc()
	return accepted(body)
}

// identify finds the job for which a request may speak, and the pod that does, or why it may not.
func (h *handler) identify(
	ctx context.Context, request *http.Request, key types.NamespacedName,
) (*trainerv1alpha1.TrainJob, member, *answer) {
	token := bearer(request.Header)
	claimed, ok := readClaims(token)
	if !ok || !claimed.claimFor(plan.StatusAudience(key), h.clock.Now()) {
		return nil, member{}, new(forbidden())
	}
	var job trainerv1alpha1.TrainJob
	err := h.cached.Get(ctx, key, &job)
	if client.IgnoreNotFound(err) != nil {
		return nil, member{}, new(refusal(ctx, err))
	}
	if err == nil && !h.class.Handles(&job) {
		return nil, member{}, new(forbidden())
	}
	if err == nil {
		if pod, known := h.identities.knows(ctx, token, &job); known {
			return &job, pod, nil
		}
	}
	if !h.identities.proving.take() {
		return nil, member{}, new(tooMany(crowded))
	}
	defer h.identities.proving.leave()
	source, _, _ := net.SplitHostPort(request.RemoteAddr)
	if wait, ok := h.limits.admit(stranger{source, key.Namespace, key.Name}); !ok {
		return nil, member{}, new(tooMany(wait))
	}
	if err != nil {
		// Only a client with a token of the job's namespace may learn that there is no such job.
		if _, denied := h.identities.podOf(ctx, token, key); denied != nil {
			return nil, member{}, new(refusal(ctx, denied))
		}
		return nil, member{}, new(notFound("Train job not found"))
	}
	pod, err := h.identities.prove(ctx, token, &job)
	if err != nil {
		return nil, member{}, new(refusal(ctx, err))
	}
	return &job, pod, nil
}

// refusal is the answer to an error.
func refusal(ctx context.Context, err error) answer {
	log := klog.FromContext(ctx)
	switch {
	case errors.Is(err, errDenied):
		log.V(2).Info("Refused a report", "reason", err.Error())
		return forbidden()
	case apierrors.IsNotFound(err):
		return notFound("Train job not found")
	case apierrors.IsInvalid(err):
		var refused apierrors.APIStatus
		errors.As(err, &refused)
		return invalid(refused.Status().Message)
	case overloaded(err):
		log.V(2).Info("API server has no time for a report", "reason", err.Error())
		seconds, _ := apierrors.SuggestsClientDelay(err)
		return unavailable(max(crowded, time.Duration(seconds)*time.Second))
	default:
		log.Error(err, "Answering a report")
		return internal()
	}
}

// overloaded reports whether the API server was overloaded: the same request may succeed later.
func overloaded(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || utilnet.IsTimeout(err)
}

// jobOf is the job that a request reports on; ok is false for all requests that are no reports, and for names that no
// object can have. The limits remember names before anything is proven, so their length is bounded here.
func jobOf(request *http.Request) (job types.NamespacedName, ok bool) {
	parts := strings.Split(request.URL.Path, "/")
	if request.Method != http.MethodPost || len(parts) != 9 {
		return types.NamespacedName{}, false
	}
	job = types.NamespacedName{Namespace: parts[5], Name: parts[7]}
	possible := len(validation.IsDNS1123Label(job.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(job.Name)) == 0
	return job, possible && request.URL.Path == plan.StatusPath(job)
}
