package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller/admission"
)

// reviews lets Kueue alone write the status of all TrainJobs.
type reviews struct {
	err   error
	asked []authorizationv1.SubjectAccessReviewSpec
}

func (r *reviews) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	review := object.(*authorizationv1.SubjectAccessReview)
	r.asked = append(r.asked, review.Spec)
	review.Status.Allowed = review.Spec.User == "kueue"
	return r.err
}

// inQueue has a TrainJob wait in a queue of Kueue's.
func inQueue(queue string, job []byte) []byte {
	return bytes.Replace(job, []byte(`"metadata":{`),
		fmt.Appendf(nil, `"metadata":{"labels":{"kueue.x-k8s.io/queue-name":%q},`, queue), 1)
}

// waiting returns a TrainJob that is suspended or not, with the instant from which it waits; empty if it does not.
func waiting(suspend bool, since string) []byte {
	annotations := `"else":"kept"`
	if since != "" {
		annotations += fmt.Sprintf(`,"state.lockstep.dev/queued-at":%q`, since)
	}
	return fmt.Appendf(
		nil,
		`{"metadata":{"name":"train","annotations":{%s}},"spec":{"runtimeRef":{"name":"rt"},"suspend":%t}}`,
		annotations,
		suspend,
	)
}

// A job waits from its creation, or from its resumption by its owner, or from a change of its queue. No user can write
// himself to the front.
func TestDefaulter_TakesTheJobsTurn(t *testing.T) {
	const early, noon = "2026-11-20T00:00:00Z", "2026-11-22T12:00:00Z"
	for name, c := range map[string]struct {
		user      string
		old, next []byte
		want      string
		asks      int
	}{
		"a new job waits since its creation": {user: "ada", next: waiting(false, "")},
		"nobody writes it on a new job":      {user: "ada", next: waiting(false, early)},
		"nor on one that exists":             {user: "ada", old: waiting(false, ""), next: waiting(false, early)},
		"nor when it is suspended":           {user: "ada", old: waiting(false, ""), next: waiting(true, early)},
		"nor Kueue": {
			user: "kueue", old: inQueue("a", waiting(true, "")), next: inQueue("a", waiting(false, early)), asks: 1,
		},
		"nobody removes it":                        {user: "ada", old: waiting(false, noon), next: waiting(false, ""), want: noon},
		"nor changes it":                           {user: "ada", old: waiting(false, noon), next: waiting(false, early), want: noon},
		"what its owner resumes waits from now on": {user: "ada", old: waiting(true, ""), next: waiting(false, ""), want: noon},
		"again, and whatever he writes":            {user: "ada", old: waiting(true, early), next: waiting(false, early), want: noon},
		"also from a queue of Kueue's": {
			user: "ada", old: inQueue("a", waiting(true, "")), next: inQueue("a", waiting(false, "")), want: noon, asks: 1,
		},
		"what Kueue resumes has waited all the time": {
			user: "kueue", old: inQueue("a", waiting(true, "")), next: inQueue("a", waiting(false, "")), asks: 1,
		},
		"or since its owner resumed it": {
			user: "kueue", old: inQueue("a", waiting(true, early)), next: inQueue("a", waiting(false, early)),
			want: early, asks: 1,
		},
		"what Argo CD resumes was in no queue": {user: "kueue", old: waiting(true, ""), next: waiting(false, ""), want: noon},
		"nor is it if it enters one with that": {
			user: "kueue", old: waiting(true, ""), next: inQueue("a", waiting(false, "")), want: noon,
		},
		"who enters a queue waits from then on": {
			user: "ada", old: waiting(true, ""), next: inQueue("a", waiting(true, early)), want: noon,
		},
		"and who corrects its name": {
			user: "ada", old: inQueue("ghost", waiting(true, early)), next: inQueue("a", waiting(true, early)), want: noon,
		},
		"and who leaves it": {
			user: "ada", old: inQueue("a", waiting(true, early)), next: waiting(true, early), want: noon,
		},
		"a new job in a queue waits since its creation": {user: "ada", next: inQueue("a", waiting(true, early))},
		"a running job's label says nothing": {
			user: "ada", old: waiting(false, early), next: inQueue("a", waiting(false, early)), want: early,
		},
		"suspending keeps it": {user: "ada", old: waiting(false, early), next: waiting(true, early), want: early},
		"also when Kueue does": {
			user: "kueue", old: inQueue("a", waiting(false, early)), next: inQueue("a", waiting(true, early)), want: early,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &reviews{}
			d := &admission.Defaulter{Reviews: asked, Clock: clocktesting.NewFakePassiveClock(now())}
			out, err := d.Default(t.Context(), admission.Change{
				Namespace: "team", User: authenticationv1.UserInfo{Username: c.user}, Old: c.old, Next: c.next,
			})
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Metadata struct{ Annotations map[string]string }
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			if since := got.Metadata.Annotations["state.lockstep.dev/queued-at"]; since != c.want {
				t.Errorf("it waits since %q, want %q", since, c.want)
			}
			if got.Metadata.Annotations["else"] != "kept" || len(asked.asked) != c.asks {
				t.Errorf("%d questions, want %d; stored %s", len(asked.asked), c.asks, out)
			}
		})
	}
}

// The rights of a resuming user are evaluated with all groups of the user, and for all namespaces: a user who may write
// only the status of the user's own jobs is no controller.
func TestDefaulter_AsksWhoResumes(t *testing.T) {
	asked := &reviews{}
	d := &admission.Defaulter{Reviews: asked, Clock: clocktesting.NewFakePassiveClock(now())}
	user := authenticationv1.UserInfo{
		Username: "ada", UID: "1", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
	}
	change := admission.Change{
		Namespace: "team",
		User:      user,
		Old:       inQueue("a", waiting(true, "")),
		Next:      inQueue("a", waiting(false, "")),
	}
	if _, err := d.Default(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	spec := asked.asked[0]
	want := authorizationv1.ResourceAttributes{
		Group:       "trainer.kubeflow.org",
		Resource:    "trainjobs",
		Subresource: "status",
		Verb:        "update",
	}
	if spec.User != "ada" || spec.UID != "1" || spec.Groups[0] != "g" || spec.Extra["k"][0] != "v" ||
		*spec.ResourceAttributes != want {
		t.Errorf("asked %+v about %+v", spec, spec.ResourceAttributes)
	}
	lost := errors.New("lost")
	d.Reviews = &reviews{err: lost}
	if _, err := d.Default(t.Context(), change); !errors.Is(err, lost) || errors.Is(err, admission.ErrMalformed) {
		t.Errorf("without an answer: error %v", err)
	}
}

// After an old object that is absent or malformed, the next one is stored unchanged.
func TestDefaulter_TurnsOfOddJobs(t *testing.T) {
	d := &admission.Defaulter{Reviews: &reviews{}, Clock: clocktesting.NewFakePassiveClock(now().Add(time.Second))}
	for _, old := range []string{"", "no JSON", `{"metadata":{"annotations":[]}}`} {
		out, err := d.Default(
			t.Context(),
			admission.Change{Old: []byte(old), Next: []byte(`{"metadata":{},"spec":{"suspend":false}}`)},
		)
		if err != nil || string(out) != `{"metadata":{},"spec":{"suspend":false}}` {
			t.Errorf("after %q: %s, %v", old, out, err)
		}
	}
}
