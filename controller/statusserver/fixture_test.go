package statusserver_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/statusserver"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

const namespace = "team-a"

// start returns the time at which the fixture's clock starts.
func start() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) }

// fixture is a status server, and a cluster in which tokens are the names that they prove.
type fixture struct {
	t        testing.TB
	clock    *clocktesting.FakePassiveClock
	cluster  client.WithWatch
	server   *statusserver.Server
	registry *prometheus.Registry
	// reviews counts TokenReviews. review, if set, changes the API server's review of a token; writing is called before
	// each write.
	reviews atomic.Int64
	review  func(*authenticationv1.TokenReviewStatus)
	writing func(ctx context.Context, job string) error
	// reviewing is called before each TokenReview.
	reviewing func(context.Context) error
}

// errStored is returned by writing instead of having the report stored.
var errStored = errors.New("stored")

func newFixture(tb testing.TB, objects ...client.Object) *fixture {
	tb.Helper()
	scheme, err := controller.Scheme(gangapi.Native)
	if err != nil {
		tb.Fatal(err)
	}
	w := &fixture{t: tb, clock: clocktesting.NewFakePassiveClock(start())}
	w.cluster = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&trainerv1alpha1.TrainJob{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				review, ok := o.(*authenticationv1.TokenReview)
				if !ok {
					return c.Create(ctx, o, opts...)
				}
				w.reviews.Add(1)
				if w.reviewing != nil {
					if err := w.reviewing(ctx); err != nil {
						return err
					}
				}
				review.Status = believe(review.Spec)
				if w.review != nil {
					w.review(&review.Status)
				}
				return nil
			},
			SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration,
				opts ...client.SubResourceApplyOption,
			) error {
				named, _ := o.(interface{ GetName() string })
				if w.writing != nil {
					if err := w.writing(ctx, named.GetName()); errors.Is(err, errStored) {
						return nil
					} else if err != nil {
						return err
					}
				}
				return c.SubResource(sub).Apply(ctx, o, opts...)
			},
		}).Build()
	w.of(class.Class{})
	return w
}

// of makes a server for the jobs of a class in the place of the one that there is.
func (w *fixture) of(jobs class.Class) {
	options := w.options()
	options.Class, w.registry = jobs, prometheus.NewRegistry()
	options.Registry = w.registry
	w.server = statusserver.New(options)
}

// options are those of a server on loopback, with metrics of its own.
func (w *fixture) options() statusserver.Options {
	return statusserver.Options{
		Address:          "127.0.0.1:0",
		GetCertificate:   func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errStored },
		Cached:           w.cluster,
		Proofs:           proofsOnly{w.cluster},
		Writes:           writesOnly{w.cluster},
		QueriesPerSecond: 200,
		Burst:            400,
		Clock:            w.clock,
		Registry:         prometheus.NewRegistry(),
	}
}

// proofsOnly is a client that must not be used to write reports, and writesOnly one that must not be used to prove
// identities: each has a limit, and a call by the wrong one would delay the other's.
type (
	proofsOnly struct{ client.Client }
	writesOnly struct{ client.Client }
)

// Status panics, which the server answers as a fault.
func (proofsOnly) Status() client.SubResourceWriter {
	panic("a report was written with the calls for proofs")
}

// Create panics, which the server answers as a fault.
func (writesOnly) Create(context.Context, client.Object, ...client.CreateOption) error {
	panic("a token was reviewed with the calls for writes")
}

// Get lets only TrainJobs be read.
func (c writesOnly) Get(
	ctx context.Context,
	key client.ObjectKey,
	object client.Object,
	opts ...client.GetOption,
) error {
	if _, ok := object.(*trainerv1alpha1.TrainJob); !ok {
		panic("a pod or its owner was read with the calls for writes")
	}
	return c.Client.Get(ctx, key, object, opts...)
}

// believe is the API server's review: the third part of a token names its pod as namespace/pod/uid.
func believe(spec authenticationv1.TokenReviewSpec) authenticationv1.TokenReviewStatus {
	parts := strings.Split(spec.Token, ".")
	whose, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return authenticationv1.TokenReviewStatus{Error: "bad signature"}
	}
	name := strings.Split(string(whose), "/")
	return authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: spec.Audiences,
		User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:" + name[0] + ":default",
			Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {name[1]}, "authentication.kubernetes.io/pod-uid": {name[2]},
			},
		},
	}
}

// token is a token of a pod for a job's status, good for an hour.
func token(pod, job string) string {
	return tokenWith(map[string]any{
		"aud": []string{plan.StatusAudience(types.NamespacedName{Namespace: namespace, Name: job})},
		"exp": start().Add(time.Hour).Unix(),
	}, namespace+"/"+pod+"/"+pod+"-uid")
}

func tokenWith(claims map[string]any, whose string) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(payload) + "." + encode([]byte(whose))
}

// family is a TrainJob with all that it becomes: a JobSet, a Job and a pod called <name>-pod on a node.
func family(name string) []client.Object {
	owned := func(kind, group, owner string) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{
			APIVersion: group, Kind: kind, Name: owner, UID: types.UID(owner + "-uid"), Controller: new(true),
		}}}
	}
	meta := func(meta metav1.ObjectMeta, called string) metav1.ObjectMeta {
		meta.Namespace, meta.Name, meta.UID = namespace, called, types.UID(called+"-uid")
		return meta
	}
	pod := &corev1.Pod{ObjectMeta: meta(owned("Job", "batch/v1", name+"-node-0"), name+"-pod")}
	pod.Labels, pod.Spec.NodeName = map[string]string{jobsetv1alpha2.JobSetNameKey: name}, "node"
	return []client.Object{
		&trainerv1alpha1.TrainJob{ObjectMeta: meta(metav1.ObjectMeta{}, name)},
		&jobsetv1alpha2.JobSet{ObjectMeta: meta(owned("TrainJob", "trainer.kubeflow.org/v1alpha1", name), name)},
		&batchv1.Job{ObjectMeta: meta(owned("JobSet", "jobset.x-k8s.io/v1alpha2", name), name+"-node-0")},
		pod,
	}
}

// post reports on a job and returns the code and the answer.
func (w *fixture) post(job, token, body string) (int, string) {
	w.t.Helper()
	response := w.send(
		http.MethodPost,
		plan.StatusPath(types.NamespacedName{Namespace: namespace, Name: job}),
		token,
		body,
	)
	return response.Code, response.Body.String()
}

func (w *fixture) send(method, path, token, body string) *httptest.ResponseRecorder {
	w.t.Helper()
	request := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(response, request)
	return response
}

// pass lets time pass, and writes the reports that are due by then.
func (w *fixture) pass(d time.Duration) {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	w.server.WriteDue(w.t.Context())
}

// status returns the job's trainerStatus when all is written that is due.
func (w *fixture) status(job string) *trainerv1alpha1.TrainerStatus {
	w.t.Helper()
	w.pass(0)
	var found trainerv1alpha1.TrainJob
	if err := w.cluster.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: job}, &found); err != nil {
		w.t.Fatal(err)
	}
	return found.Status.TrainerStatus
}

// progress is a report.
func progress(percent int) string {
	return fmt.Sprintf(
		`{"trainerStatus":{"progressPercentage":%d,"estimatedRemainingSeconds":60,"metrics":[{"name":"loss","value":"0.1"}],`+
			`"lastUpdatedTime":"2026-11-22T10:00:00Z"}}`,
		percent,
	)
}

// metric is the value of a metric of the server's, as Prometheus prints its name; 0 for none.
func (w *fixture) metric(name string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels strings.Builder
			for _, label := range metric.GetLabel() {
				fmt.Fprintf(&labels, "{%s=%q}", label.GetName(), label.GetValue())
			}
			if family.GetName()+labels.String() == name {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// tally counts writes by job.
type tally struct {
	mu    sync.Mutex
	byJob map[string]int
}

// Add counts one.
func (c *tally) Add(job string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byJob == nil {
		c.byJob = map[string]int{}
	}
	c.byJob[job]++
}

// Count returns the number of them.
func (c *tally) Count(job string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byJob[job]
}

// Wait waits until there was one.
func (c *tally) Wait(t *testing.T, job string) {
	t.Helper()
	for range 1000 {
		if c.Count(job) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("nothing was written for %s within 10 s", job)
}
