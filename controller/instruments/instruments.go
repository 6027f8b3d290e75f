package instruments

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The results of reconciling a TrainJob.
const (
	// ResultOK is a job that is as it should be.
	ResultOK = "ok"
	// ResultWaiting is a job that waits for an earlier object to go.
	ResultWaiting = "waiting"
	// ResultMissingRuntime is a job whose runtime does not exist.
	ResultMissingRuntime = "missing-runtime"
	// ResultRefused is a job that cannot be rendered.
	ResultRefused = "refused"
	// ResultError is a fault, which is tried again.
	ResultError = "error"
)

// Controller is the controller's metrics.
type Controller struct {
	// ClusterMode is 1 for the mode that the cluster offers.
	ClusterMode *prometheus.GaugeVec
	// Reconciles counts reconciliations of TrainJobs.
	Reconciles *prometheus.CounterVec
}

// New registers the controller's metrics on registry.
func New(registry prometheus.Registerer) *Controller {
	factory := promauto.With(registry)
	return &Controller{
		ClusterMode: factory.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "lockstep", Name: "cluster_mode",
			Help: "What the cluster offers for gangs: 1 for its mode (full, groups).",
		}, []string{"mode"}),
		Reconciles: factory.NewCounterVec(prometheus.CounterOpts{
			Namespace: "lockstep", Subsystem: "controller", Name: "reconciles_total",
			Help: "Reconciliations of TrainJobs, by framework and result.",
		}, []string{"framework", "result"}),
	}
}
