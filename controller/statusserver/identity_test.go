package statusserver_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// audience is that of team-a/train.
func audience() string {
	return plan.StatusAudience(types.NamespacedName{Namespace: namespace, Name: "train"})
}

// Senders other than the job's pods are refused, always in the same words. Tokens that cannot be valid are not sent to
// the API server.
func TestIdentity_StrangersAreRefused(t *testing.T) {
	later := start().Add(time.Hour).Unix()
	mine := map[string]any{"aud": audience(), "exp": later}
	for name, test := range map[string]struct {
		token   string
		change  func([]client.Object) []client.Object
		says    func(*authenticationv1.TokenReviewStatus)
		reviews int64
	}{
		"no JSON Web Token":  {token: "secret"},
		"two parts":          {token: "a.b"},
		"no base64":          {token: "a.%.c"},
		"no JSON":            {token: "a.e30x.c"},
		"an audience number": {token: tokenWith(map[string]any{"aud": 7, "exp": later}, "team-a/train-pod/train-pod-uid")},
		"two words":          {token: token("train-pod", "train") + " more"},
		"for the API server": {token: tokenWith(map[string]any{"aud": "https://kubernetes.default.svc", "exp": later}, "team-a/train-pod/train-pod-uid")},
		"for another job":    {token: token("train-pod", "other")},
		"past its end":       {token: tokenWith(map[string]any{"aud": audience(), "exp": start().Unix()}, "team-a/train-pod/train-pod-uid")},
		"without an end":     {token: tokenWith(map[string]any{"aud": audience()}, "team-a/train-pod/train-pod-uid")},
		"a forged signature": {token: token("train-pod", "train") + "%", reviews: 1},
		"meant for others": {
			token: token("train-pod", "train"), reviews: 1,
			says: func(status *authenticationv1.TokenReviewStatus) { status.Audiences = []string{"others"} },
		},
		"an API server that knows no audiences": {
			token: token("train-pod", "train"), reviews: 1,
			says: func(status *authenticationv1.TokenReviewStatus) { status.Audiences = nil },
		},
		"of another namespace": {token: tokenWith(mine, "team-b/train-pod/train-pod-uid"), reviews: 1},
		"of a namespace that begins alike": {
			token: tokenWith(mine, "team-a-too/train-pod/train-pod-uid"), reviews: 1,
		},
		"not bound to a pod": {
			token: token("train-pod", "train"), reviews: 1,
			says: func(status *authenticationv1.TokenReviewStatus) { status.User.Extra = nil },
		},
		"a person": {
			token: token("train-pod", "train"), reviews: 1,
			says: func(status *authenticationv1.TokenReviewStatus) { status.User.Username = "team-a" },
		},
		"of a pod that is gone":   {token: token("gone", "train"), reviews: 1},
		"of an earlier pod":       {token: tokenWith(mine, "team-a/train-pod/earlier"), reviews: 1},
		"of another job's pod":    {token: token("other-pod", "train"), reviews: 1},
		"of a pod without labels": {token: token("train-pod", "train"), reviews: 1, change: unlabeled},
		"of a pod that waits":     {token: token("train-pod", "train"), reviews: 1, change: unscheduled},
		"of a pod by hand":        {token: token("train-pod", "train"), reviews: 1, change: orphaned(3)},
		"of a Job by hand":        {token: token("train-pod", "train"), reviews: 1, change: orphaned(2)},
		"of a JobSet by hand":     {token: token("train-pod", "train"), reviews: 1, change: orphaned(1)},
		"without a Job":           {token: token("train-pod", "train"), reviews: 1, change: without(2)},
		"without a JobSet":        {token: token("train-pod", "train"), reviews: 1, change: without(1)},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(family("train"), family("other")...)
			if test.change != nil {
				objects = test.change(objects)
			}
			w := newFixture(t, objects...)
			w.review = test.says
			code, body := w.post("train", test.token, progress(1))
			if code != http.StatusForbidden || !strings.Contains(body, `"message":"Forbidden"`) {
				t.Errorf("answer %d %s, want 403", code, body)
			}
			if n := w.reviews.Load(); n != test.reviews {
				t.Errorf("%d TokenReviews, want %d", n, test.reviews)
			}
			if w.status("train") != nil {
				t.Error("something was written")
			}
		})
	}
}

func unlabeled(objects []client.Object) []client.Object {
	objects[3].SetLabels(nil)
	return objects
}

// unscheduled leaves the pod without a node: its user can request a token of it, though no program of it has started.
func unscheduled(objects []client.Object) []client.Object {
	if pod, ok := objects[3].(*corev1.Pod); ok {
		pod.Spec.NodeName = ""
	}
	return objects
}

// orphaned gives an object of the family an owner of the same name that is another one.
func orphaned(i int) func([]client.Object) []client.Object {
	return func(objects []client.Object) []client.Object {
		owners := objects[i].GetOwnerReferences()
		owners[0].UID = "earlier"
		objects[i].SetOwnerReferences(owners)
		return objects
	}
}

func without(i int) func([]client.Object) []client.Object {
	return func(objects []client.Object) []client.Object { return slices.Delete(objects, i, i+1) }
}

// Only a sender with a token of the namespace gets the answer that there is no such job.
func TestIdentity_DeletedJobNeedsToken(t *testing.T) {
	w := newFixture(t, without(0)(family("train"))...)
	request := func(token string) (int, string) {
		return w.send(http.MethodPost, "/apis/"+audience(), token, progress(1)).Code, ""
	}
	if code, _ := request(token("train-pod", "train")); code != http.StatusNotFound {
		t.Errorf("with a good token %d, want 404", code)
	}
	if code, _ := request(token("gone", "train")); code != http.StatusForbidden {
		t.Errorf("with the token of a pod that is gone %d, want 403", code)
	}
}

// A proof is renewed after a minute, beside the requests, and holds for its own job only and never beyond the token's
// end.
func TestToken_HowLongItIsBelieved(t *testing.T) {
	w := newFixture(t, family("train")...)
	brief := tokenWith(map[string]any{"aud": audience(), "exp": start().Add(20 * time.Second).Unix()},
		"team-a/train-pod/train-pod-uid")
	steps := []struct {
		at      time.Duration
		token   string
		code    int
		reviews int64
	}{
		{0, token("train-pod", "train"), 200, 1},
		{0, brief, 200, 2},
		{19 * time.Second, brief, 200, 2},
		{20 * time.Second, brief, 403, 2},
		{statusserver.Believed - time.Second, token("train-pod", "train"), 200, 2},
		{statusserver.Believed + time.Second, token("train-pod", "train"), 200, 3},
		{2 * statusserver.Believed, token("train-pod", "train"), 200, 3},
		{3 * statusserver.Believed, token("train-pod", "train"), 200, 4},
	}
	for _, step := range steps {
		w.clock.SetTime(start().Add(step.at))
		code, body := w.post("train", step.token, progress(1))
		w.server.Settle()
		if code != step.code || w.reviews.Load() != step.reviews {
			t.Errorf("after %v: %d %s after %d reviews, want %d after %d",
				step.at, code, body, w.reviews.Load(), step.code, step.reviews)
		}
	}
}

// A deleted pod's token is worth one report more than a minute after the last proof, and none after that.
func TestToken_OfADeletedPod(t *testing.T) {
	report := func(w *fixture, after time.Duration) int {
		w.clock.SetTime(w.clock.Now().Add(after))
		code, _ := w.post("train", token("train-pod", "train"), progress(1))
		w.server.Settle()
		return code
	}
	for name, test := range map[string]struct {
		change func(*fixture)
		after  time.Duration
		codes  []int
	}{
		"reports on":                   {after: statusserver.Believed, codes: []int{200, 403, 403}},
		"reports before it is due":     {after: 5 * time.Second, codes: []int{200, 200}},
		"comes back after the lapse":   {after: statusserver.Lapses, codes: []int{403}},
		"of a JobSet that restarted":   {change: restarted, after: 5 * time.Second, codes: []int{200, 403}},
		"of a JobSet that was deleted": {change: withoutJobSet, after: 5 * time.Second, codes: []int{200, 403}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, family("train")...)
			if code := report(w, 0); code != http.StatusOK {
				t.Fatalf("%d", code)
			}
			w.review = func(status *authenticationv1.TokenReviewStatus) { // as the API server does without the pod
				*status = authenticationv1.TokenReviewStatus{Error: "pod is gone"}
			}
			if test.change != nil {
				test.change(w)
			}
			for i, want := range test.codes {
				if code := report(w, test.after); code != want {
					t.Errorf("report %d: %d, want %d", i, code, want)
				}
			}
		})
	}
}

func restarted(w *fixture) {
	jobSet, _ := family("train")[1].(*jobsetv1alpha2.JobSet)
	if err := w.cluster.Get(w.t.Context(), client.ObjectKeyFromObject(jobSet), jobSet); err != nil {
		w.t.Fatal(err)
	}
	jobSet.Status.Restarts++
	if err := w.cluster.Update(w.t.Context(), jobSet); err != nil {
		w.t.Fatal(err)
	}
}

func withoutJobSet(w *fixture) {
	if err := w.cluster.Delete(w.t.Context(), family("train")[1]); err != nil {
		w.t.Fatal(err)
	}
}

// An API server that does not answer TokenReviews makes no known pod a stranger, until its proof lapses.
func TestToken_WithoutAnAPIServer(t *testing.T) {
	w := newFixture(t, family("train")...)
	w.post("train", token("train-pod", "train"), progress(1))
	w.reviewing = func(context.Context) error { return errors.New("no answer") }
	for range 9 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		code, body := w.post("train", token("train-pod", "train"), progress(1))
		w.server.Settle()
		if code != http.StatusOK {
			t.Fatalf("at %v: %d %s", w.clock.Now(), code, body)
		}
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if code, _ := w.post("train", token("train-pod", "train"), progress(1)); code != http.StatusInternalServerError {
		t.Errorf("after the lapse: %d, want 500", code)
	}
	w.reviewing = nil
	if code, _ := w.post("train", token("train-pod", "train"), progress(1)); code != http.StatusOK {
		t.Errorf("when it answers again: %d", code)
	}
}

// An overloaded API server is no fault: the sender is asked to retry, before its own timeout of ten seconds ends.
func TestProof_AnAPIServerWithoutTime(t *testing.T) {
	reviews := schema.GroupResource{Group: authenticationv1.GroupName, Resource: "tokenreviews"}
	for name, test := range map[string]struct {
		meets func(ctx context.Context) error
		retry string
	}{
		"too many requests": {retry: "7", meets: func(context.Context) error {
			return apierrors.NewTooManyRequests("overloaded", 7)
		}},
		"a timeout of its own": {retry: "1", meets: func(context.Context) error {
			return apierrors.NewServerTimeout(reviews, "create", 0)
		}},
		"no leader": {retry: "1", meets: func(context.Context) error {
			return apierrors.NewServiceUnavailable("etcd has no leader")
		}},
		"silence": {retry: "1", meets: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t, family("train")...)
				w.reviewing = test.meets
				began := time.Now()
				response := w.send(http.MethodPost, "/apis/"+audience(), token("train-pod", "train"), progress(1))
				retry := response.Header().Get("Retry-After")
				if response.Code != http.StatusServiceUnavailable || retry != test.retry {
					t.Errorf("answer %d, Retry-After %q, want 503 and %q", response.Code, retry, test.retry)
				}
				if took := time.Since(began); took >= 10*time.Second {
					t.Errorf("the answer takes %v: nobody waits for it any more", took)
				}
				w.reviewing = nil
				if code, body := w.post("train", token("train-pod", "train"), progress(1)); code != http.StatusOK {
					t.Errorf("when it has time: %d %s", code, body)
				}
			})
		})
	}
}

// A report of a known pod needs one field of its JobSet, which may be large: the cache's own is read, not a copy.
func TestToken_OfAKnownPodCopiesNoJobSet(t *testing.T) {
	w := newFixture(t, family("train")...)
	options, reader := w.options(), &copying{Client: w.cluster}
	options.Cached = reader
	w.server = statusserver.New(options)
	for range 2 {
		reader.copies = 0
		if code, body := w.post("train", token("train-pod", "train"), progress(1)); code != http.StatusOK {
			t.Fatalf("answer %d %s", code, body)
		}
	}
	if reader.copies != 0 {
		t.Errorf("%d copies of the JobSet for a report of a known pod", reader.copies)
	}
}

// copying is a cache that counts copies of JobSets.
type copying struct {
	client.Client

	copies int
}

func (c *copying) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	options := (&client.GetOptions{}).ApplyOptions(opts)
	if _, ok := object.(*jobsetv1alpha2.JobSet); ok && !ptr.Deref(options.UnsafeDisableDeepCopy, false) {
		c.copies++
	}
	return c.Client.Get(ctx, key, object, opts...)
}

// A job of the same name is another job: a pod that was believed for the first one is not believed for it.
func TestIdentity_JobOfTheSameNameIsAnother(t *testing.T) {
	w := newFixture(t, family("train")...)
	if code, _ := w.post("train", token("train-pod", "train"), progress(1)); code != 200 {
		t.Fatalf("%d", code)
	}
	job := family("train")[0]
	if err := w.cluster.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	job.SetUID("second")
	job.SetResourceVersion("")
	job.SetCreationTimestamp(metav1.Time{})
	if err := w.cluster.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if code, _ := w.post("train", token("train-pod", "train"), progress(1)); code != http.StatusForbidden {
		t.Errorf("the first job's pod reports on the second: %d, want 403", code)
	}
}
