package app

import (
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// The client's requests for a member: a binding, and for each claim its finalizer and its allocation.
const (
	requestsToBind  = 1
	requestsToClaim = 2
)

// leastStart returns the least time from a gang's first to its last binding, by the limit of the client alone. A client
// without a limit (qps below 0) takes no time.
func leastStart(members, claimsEach int, qps float32, burst int) time.Duration {
	over := members*(requestsToBind+claimsEach*requestsToClaim) - burst
	if qps <= 0 || over <= 0 {
		return 0
	}
	return time.Duration(float64(over) / float64(qps) * float64(time.Second)).Round(time.Millisecond)
}

// logLimits logs the start times of large gangs at the client's limit.
func logLimits(logger klog.Logger, config *rest.Config) {
	values := []any{"qps", config.QPS, "burst", config.Burst}
	for _, gang := range []struct {
		what            string
		members, claims int
	}{
		{"members1000", 1000, 0}, {"members10000", 10000, 0}, {"members10000WithClaim", 10000, 1},
	} {
		values = append(values, gang.what, leastStart(gang.members, gang.claims, config.QPS, config.Burst).String())
	}
	logger.Info("Client limits: least time from the first to the last binding of a gang", values...)
}
