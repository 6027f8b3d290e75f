package trainjob_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/trainjob"
	"github.com/lockstep-project/lockstep/controller/turns"
)

const statusURL = "https://status.lockstep-system.svc:10443"

// reporting switches the status server of a fixture on, with an authority that tests change.
func (w *fixture) reporting(authority *string) {
	w.Options.StatusServer = &plan.StatusServer{URL: statusURL}
	w.Authority = func() string { return *authority }
}

// trusted returns the authority that the job's pods are given.
func (w *fixture) trusted() string {
	w.t.Helper()
	var config corev1.ConfigMap
	key := types.NamespacedName{Namespace: namespace, Name: "train-tls-config"}
	if err := w.Client.Get(w.t.Context(), key, &config); err != nil {
		w.t.Fatal(err)
	}
	return config.Data["ca.crt"]
}

// Pods that mount a missing ConfigMap would wait; so nothing is created before the authority is known, and the job is
// retried soon.
func TestAuthority_PodsWaitForIt(t *testing.T) {
	authority := ""
	w := newFixture(t, plan.Options{}, torch(), trainJob())
	w.reporting(&authority)
	result := w.settle()
	if diff := cmp.Diff([]string{"patch TrainJob status"}, w.writes); diff != "" || result.RequeueAfter != time.Second {
		t.Errorf("without an authority it is tried again after %v; writes (-want +got):\n%s", result.RequeueAfter, diff)
	}
	authority = "first"
	w.settle()
	want := []string{
		"create FrozenTrainJob",
		"create ConfigMap train-runtime-snapshot",
		"apply ConfigMap train-tls-config",
		"apply JobSet",
	}
	if diff := cmp.Diff(want, w.writes); diff != "" || w.trusted() != "first" {
		t.Errorf("the pods trust %q; writes (-want +got):\n%s", w.trusted(), diff)
	}
}

// A new authority reaches running jobs, once, and nothing else of them is touched.
func TestAuthority_RenewalReachesRunningJobs(t *testing.T) {
	authority := "first"
	w := newFixture(t, plan.Options{}, torch(), trainJob())
	w.reporting(&authority)
	w.start()
	authority = "second and first"
	for _, want := range [][]string{{"apply ConfigMap train-tls-config"}, nil} {
		w.settle()
		if diff := cmp.Diff(want, w.writes); diff != "" || w.trusted() != authority {
			t.Errorf("the pods trust %q; writes (-want +got):\n%s", w.trusted(), diff)
		}
	}
	// While the authority is not known, for example after a restart, a running job retains its ConfigMap.
	authority = ""
	w.settle()
	if len(w.writes) > 0 || w.trusted() != "second and first" {
		t.Errorf("the pods trust %q after %v", w.trusted(), w.writes)
	}
}

// After an administrator switches the status server, all jobs that wait in a queue can still be resumed: a JobSet with
// other pods would be refused.
func TestStatusServer_QueuedJobsStayResumable(t *testing.T) {
	authority := "first"
	on := func(w *fixture) { w.reporting(&authority) }
	moved := func(w *fixture) {
		on(w)
		w.Options.StatusServer.URL = "https://elsewhere"
	}
	off := func(w *fixture) { w.Options.StatusServer, w.Authority = nil, nil }
	for name, switches := range map[string][]func(*fixture){"on": {off, on}, "off": {on, off}, "moved": {on, moved}} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, plan.Options{}, torch(), trainJob(suspend(true)))
			switches[0](w)
			w.settle()
			queued := w.jobSet()
			switches[1](w)
			w.change(suspend(false))
			w.settle()
			resumed := w.jobSet()
			if *resumed.Spec.Suspend {
				t.Fatal("the JobSet was not resumed")
			}
			if diff := cmp.Diff(queued.Spec.ReplicatedJobs, resumed.Spec.ReplicatedJobs); diff != "" {
				t.Errorf("its pods changed (-queued +resumed):\n%s", diff)
			}
		})
	}
}

// A report that the reconciler's cache has not seen yet stays: the status is written when the cache has caught up.
func TestReports_SurviveTheReconciler(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob())
	w.settle()
	stale := w.job()
	reported := stale.DeepCopy()
	reported.Status.TrainerStatus = &trainerv1alpha1.TrainerStatus{
		ProgressPercentage: new(int32(40)), LastUpdatedTime: metav1.NewTime(created()),
	}
	if err := w.Client.Status().Update(t.Context(), reported); err != nil {
		t.Fatal(err)
	}
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{{
			Type: string(jobsetv1alpha2.JobSetCompleted), Status: metav1.ConditionTrue, Reason: "AllJobsCompleted",
			LastTransitionTime: metav1.NewTime(created()),
		}}
	})
	w.Client = &lagging{Client: w.Client, job: stale}
	if w.settle().RequeueAfter == 0 {
		t.Error("it does not come back when its cache lagged")
	}
	w.Client = w.Client.(*lagging).Client
	w.settle()
	status := w.job().Status
	if len(status.Conditions) != 1 || status.TrainerStatus == nil || *status.TrainerStatus.ProgressPercentage != 40 {
		t.Errorf("status %+v, want Complete and the report", status)
	}
}

// Only unfinished jobs of ours are requeued, once for each new authority.
func TestFollowAuthority_RequeuesUnfinishedJobsOnce(t *testing.T) {
	named := func(name string, edit func(*trainerv1alpha1.TrainJob)) *trainerv1alpha1.TrainJob {
		return trainJob(func(job *trainerv1alpha1.TrainJob) { job.Name, job.UID = name, types.UID(name) }, edit)
	}
	w := newFixture(t, plan.Options{}, trainJob(), named("queued", suspend(true)),
		named("theirs", func(job *trainerv1alpha1.TrainJob) { job.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") }),
		named("over", func(job *trainerv1alpha1.TrainJob) {
			job.Status.Conditions = []metav1.Condition{
				{Type: trainerv1alpha1.TrainJobFailed, Status: metav1.ConditionTrue},
			}
		}))
	authority := "first"
	w.reporting(&authority)
	queue := turns.New("test", trainjob.NewRateLimiter())
	defer queue.ShutDown()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := w.FollowAuthority(ctx, queue); err != nil {
		t.Fatal(err)
	}
	var names []string
	for range 2 {
		request, _ := queue.Get()
		names = append(names, request.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"queued", "train"}, names); diff != "" || queue.Len() != 0 {
		t.Errorf("%d more; brought back (-want +got):\n%s", queue.Len(), diff)
	}
}

// A controller that has just started learns its authority, and jobs that are created then do not wait behind all those
// that there were.
func TestFollowAuthority_NewJobsGoFirst(t *testing.T) {
	authority := "first"
	w := newFixture(t, plan.Options{}, torch(), trainJob())
	w.reporting(&authority)
	queue := turns.New("test", trainjob.NewRateLimiter())
	defer queue.ShutDown()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := w.FollowAuthority(ctx, queue); err != nil {
		t.Fatal(err)
	}
	for queue.Len() == 0 {
		time.Sleep(time.Millisecond)
	}
	young := types.NamespacedName{Namespace: namespace, Name: "young"}
	queue.Add(reconcile.Request{NamespacedName: young})
	for queue.Len() == 1 {
		time.Sleep(time.Millisecond)
	}
	if first, _ := queue.Get(); first.NamespacedName != young {
		t.Errorf("%s is first, want %s", first, young)
	}
}

// Without priorities all jobs of a controller that has just started would stand before those that change.
func TestFollowAuthority_RefusesAQueueWithoutPriorities(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch())
	queue := workqueue.NewTypedRateLimitingQueue(trainjob.NewRateLimiter())
	defer queue.ShutDown()
	if err := w.FollowAuthority(t.Context(), queue); err == nil {
		t.Error("a queue without priorities is taken")
	}
}

// lagging is a cache that has not seen the latest of the job.
type lagging struct {
	client.Client

	job *trainerv1alpha1.TrainJob
}

func (l *lagging) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if job, ok := object.(*trainerv1alpha1.TrainJob); ok {
		l.job.DeepCopyInto(job)
		return nil
	}
	return l.Client.Get(ctx, key, object, options...)
}
