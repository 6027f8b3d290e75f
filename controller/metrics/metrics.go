package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/utils/lru"
)

// The results of reconciling a TrainJob.
const (
	// ResultOK is a job in its desired state.
	ResultOK = "ok"
	// ResultWaiting is a job that waits for the deletion of an earlier object.
	ResultWaiting = "waiting"
	// ResultMissingRuntime is a job with a runtime that does not exist.
	ResultMissingRuntime = "missing-runtime"
	// ResultRefused is a job that cannot be rendered.
	ResultRefused = "refused"
	// ResultStale is a job that changed during its reconciliation, which is no fault: it is requeued.
	ResultStale = "stale"
	// ResultError is a fault, after which the job is retried.
	ResultError = "error"
)

// The phases of reconciling a TrainJob.
const (
	// PhasePlan finds the runtime and renders the job.
	PhasePlan = "plan"
	// PhaseApply writes the job's objects.
	PhaseApply = "apply"
	// PhaseStatus writes the job's status.
	PhaseStatus = "status"
	// PhaseRelease deletes the objects that the job no longer needs.
	PhaseRelease = "release"
)

// Unknown is the framework, and the runtime, of a job that could not be rendered: the runtime of such a job need not
// exist.
const Unknown = "unknown"

// upstream is the prefix that Kubeflow Trainer's users expect (kubeflow/trainer#3429).
const upstream = "kubeflow_trainer"

// Controller is the controller's metrics.
type Controller struct {
	// ClusterMode is 1 for the mode that the cluster offers.
	ClusterMode *prometheus.GaugeVec
	// Rival is 1 while a Kubeflow Trainer works on the same jobs, so that this controller does not.
	Rival prometheus.Gauge
	// Reconciles counts reconciliations of TrainJobs.
	Reconciles *prometheus.CounterVec

	created, completed, failed, suspended, resumed *prometheus.CounterVec
	untilJobSet, duration, running                 *prometheus.HistogramVec
	reconciling, phases                            *prometheus.HistogramVec
	// jobs holds, by UID, the jobs that were counted as created, and whether they had a JobSet by then.
	jobs *lru.Cache
}

// New registers the controller's metrics on registry.
func New(registry prometheus.Registerer) *Controller {
	factory := promauto.With(registry)
	c := &Controller{
		ClusterMode: factory.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "lockstep", Name: "cluster_mode",
			Help: "What the cluster offers for gangs: 1 for its mode (full, groups or resources).",
		}, []string{"mode"}),
		Rival: factory.NewGauge(prometheus.GaugeOpts{
			Namespace: "lockstep",
			Subsystem: "controller",
			Name:      "rival",
			Help:      "1 while a Kubeflow Trainer holds a lease, so that this replica serves webhooks and reconciles no TrainJob.",
		}),
		Reconciles: factory.NewCounterVec(prometheus.CounterOpts{
			Namespace: "lockstep", Subsystem: "controller", Name: "reconciles_total",
			Help: "Reconciliations of TrainJobs, by framework and result.",
		}, []string{"framework", "result"}),
		reconciling: factory.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: upstream, Name: "reconcile_duration_seconds",
			Help: "How long reconciliations took, by controller and result.", Buckets: prometheus.DefBuckets,
		}, []string{"controller", "result"}),
		phases: factory.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: upstream, Name: "reconcile_phase_duration_seconds",
			Help: "How long each phase of reconciling a TrainJob took.", Buckets: prometheus.DefBuckets,
		}, []string{"phase"}),
		jobs: lru.New(remembered),
	}
	c.addLifecycle(factory)
	return c
}

// Reconciled counts one reconciliation of a TrainJob, and observes its duration.
func (c *Controller) Reconciled(framework, result string, took time.Duration) {
	c.Reconciles.WithLabelValues(framework, result).Inc()
	c.reconciling.WithLabelValues("trainjob", result).Observe(took.Seconds())
}

// Passed observes the duration of a phase of a reconciliation.
func (c *Controller) Passed(phase string, took time.Duration) {
	c.phases.WithLabelValues(phase).Observe(took.Seconds())
}
