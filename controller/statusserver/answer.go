package statusserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer is the response to a request: a code and a JSON object.
type answer struct {
	code int
	body any
	// retryAfter is in the header of that name; zero leaves it out.
	retryAfter time.Duration
}

// accepted echoes a report.
func accepted(report Report) answer { return answer{code: http.StatusOK, body: report} }

// failed is an error in the API server's form.
func failed(code int, reason metav1.StatusReason, message string) answer {
	return answer{code: code, body: metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}}
}

func notFound(message string) answer {
	return failed(http.StatusNotFound, metav1.StatusReasonNotFound, message)
}

// forbidden gives no reason: a reason would disclose which jobs and pods exist.
func forbidden() answer {
	return failed(http.StatusForbidden, metav1.StatusReasonForbidden, "Forbidden")
}

func invalid(message string) answer {
	return failed(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, message)
}

func tooLarge() answer {
	return failed(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "Payload too large")
}

func internal() answer {
	return failed(http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error")
}

// tooMany asks the client to retry later. Kubeflow Trainer has no such answer: there one job makes all others wait.
func tooMany(retryAfter time.Duration) answer {
	result := failed(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "Too many requests")
	result.retryAfter = retryAfter
	return result
}

// unavailable asks the client to retry later, because the API server is overloaded.
func unavailable(retryAfter time.Duration) answer {
	result := failed(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "Service unavailable")
	result.retryAfter = retryAfter
	return result
}

// send writes the answer. Errors of a disconnected client are ignored.
func (a answer) send(writer http.ResponseWriter) {
	content, err := json.Marshal(a.body)
	if err != nil {
		writer.WriteHeader(http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	if a.retryAfter > 0 {
		seconds := (a.retryAfter + time.Second - 1) / time.Second
		writer.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	writer.WriteHeader(a.code)
	_, _ = writer.Write(content)
}
