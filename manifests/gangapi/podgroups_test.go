package gangapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

const path = "/apis/scheduling.lockstep.dev/v1beta1/namespaces/team-a/podgroups/gang"

// server is an API server with one PodGroup, which is a custom resource.
type server struct {
	*httptest.Server

	mu     sync.Mutex
	stored schedulingv1beta1.PodGroup
	// asked are the requests, as "METHOD path".
	asked []string
	// conflicts is the number of writes that are refused because of a concurrent one.
	conflicts int
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{stored: schedulingv1beta1.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.lockstep.dev/v1beta1", Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "gang", UID: "1", ResourceVersion: "7"},
		Status: schedulingv1beta1.PodGroupStatus{Conditions: []metav1.Condition{
			{Type: "PodGroupInitiallyScheduled", Status: metav1.ConditionFalse, Reason: "Unschedulable"},
		}},
	}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPut {
		if s.conflicts > 0 {
			s.conflicts--
			s.stored.ResourceVersion = "8"
			w.WriteHeader(http.StatusConflict)
			_, _ = fmt.Fprint(
				w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`,
			)
			return
		}
		var sent schedulingv1beta1.PodGroup
		if err := json.NewDecoder(r.Body).
			Decode(&sent); err != nil ||
			sent.ResourceVersion != s.stored.ResourceVersion {
			w.WriteHeader(http.StatusConflict)
			_, _ = fmt.Fprint(
				w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`,
			)
			return
		}
		s.stored.Status = sent.Status
		s.stored.ResourceVersion += "0"
	}
	content, err := json.Marshal(s.stored)
	if err != nil {
		panic(err) // an object of the test cannot be printed
	}
	_, _ = w.Write(content) // a disconnected client needs no answer
}

// client is one without a cache.
func (s *server) client(t *testing.T) *gangapi.Clientset {
	t.Helper()
	client, err := gangapi.Client(&rest.Config{Host: s.URL}, gangapi.Resources)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// caching is a client with a cache of the group as the server has it now.
func (s *server) caching(t *testing.T) *gangapi.Clientset {
	t.Helper()
	client, seen := s.client(t), s.stored.DeepCopy()
	client.ReadFrom(func(string, string) *schedulingv1beta1.PodGroup { return seen })
	return client
}

// waiting is the patch that sets a gang's Waiting condition.
func waiting(uid string) []byte {
	return fmt.Appendf(
		nil,
		`{"metadata":{"uid":%q},"status":{"conditions":[{"type":"lockstep.dev/Waiting","status":"True"}]}}`,
		uid,
	)
}

// A status costs one request, as it does natively; a read follows only after a conflict, or without a cache. Conditions
// are merged by their type.
func TestPatch_OfAStatus(t *testing.T) {
	const put, get = "PUT " + path + "/status", "GET " + path
	for name, c := range map[string]struct {
		connect   func(*server, *testing.T) *gangapi.Clientset
		conflicts int
		want      []string
	}{
		"from the cache":     {connect: (*server).caching, want: []string{put}},
		"without a cache":    {connect: (*server).client, want: []string{get, put}},
		"after a conflict":   {connect: (*server).caching, conflicts: 1, want: []string{put, get, put}},
		"after two of these": {connect: (*server).caching, conflicts: 2, want: []string{put, get, put, get, put}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			client := c.connect(s, t)
			s.conflicts = c.conflicts
			written, err := client.SchedulingV1beta1().PodGroups("team-a").
				Patch(t.Context(), "gang", types.StrategicMergePatchType, waiting("1"), metav1.PatchOptions{}, "status")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.asked, c.want) {
				t.Errorf("asked %q, want %q", s.asked, c.want)
			}
			if len(written.Status.Conditions) != 2 ||
				!meta.IsStatusConditionTrue(written.Status.Conditions, "lockstep.dev/Waiting") {
				t.Errorf("the conditions are %v", written.Status.Conditions)
			}
		})
	}
}

// Conditions that are written at once, and before the cache shows the first, cost one request each: the group need not
// be read again.
func TestPatch_OfStatusesAtOnce(t *testing.T) {
	const writers = 8
	s := newServer(t)
	groups := s.caching(t).SchedulingV1beta1().PodGroups("team-a")
	var done sync.WaitGroup
	for i := range writers {
		done.Go(func() {
			patch := fmt.Appendf(
				nil,
				`{"metadata":{"uid":"1"},"status":{"conditions":[{"type":"example.com/%d","status":"True"}]}}`,
				i,
			)
			_, err := groups.Patch(
				t.Context(),
				"gang",
				types.StrategicMergePatchType,
				patch,
				metav1.PatchOptions{},
				"status",
			)
			if err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if len(s.asked) != writers || len(s.stored.Status.Conditions) != writers+1 {
		t.Errorf("%d requests, want %d; the conditions are %v", len(s.asked), writers, s.stored.Status.Conditions)
	}
}

// A group of the same name that was made since is another one: nothing is written to it.
func TestPatch_OfAGroupThatIsGone(t *testing.T) {
	s := newServer(t)
	client := s.caching(t)
	_, err := client.SchedulingV1beta1().PodGroups("team-a").
		Patch(t.Context(), "gang", types.StrategicMergePatchType, waiting("of-before"), metav1.PatchOptions{}, "status")
	if !apierrors.IsNotFound(err) {
		t.Errorf("%v, want that it is not there", err)
	}
	if slices.ContainsFunc(s.asked, func(request string) bool { return !strings.HasPrefix(request, "GET ") }) {
		t.Errorf("asked %q, want reads only", s.asked)
	}
}

// Patches that the API server supports are passed on, and kinds that no caller needs are refused.
func TestPatch_OfOtherKinds(t *testing.T) {
	s := newServer(t)
	groups := s.caching(t).SchedulingV1beta1().PodGroups("team-a")
	if _, err := groups.Patch(
		t.Context(),
		"gang",
		types.MergePatchType,
		[]byte(`{}`),
		metav1.PatchOptions{},
	); err != nil {
		t.Error(err)
	}
	if want := []string{"PATCH " + path}; !slices.Equal(s.asked, want) {
		t.Errorf("asked %q, want %q", s.asked, want)
	}
	_, err := groups.Patch(t.Context(), "gang", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	if !apierrors.IsBadRequest(err) || len(s.asked) != 1 {
		t.Errorf("a strategic merge of a spec: %v, after %q", err, s.asked)
	}
}

// Every read pod names its gang, by whichever way the pod joined it.
func TestClient_PodsKnowTheirGang(t *testing.T) {
	for _, api := range []gangapi.API{gangapi.Native, gangapi.Resources} {
		pods := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			pod := `"metadata":{"name":"rank-0","labels":{"lockstep.dev/pod-group":"gang"}},"spec":{}`
			switch {
			case r.URL.Query().Get("watch") != "":
				_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",%s}}`, pod)
			case strings.HasSuffix(r.URL.Path, "/pods"):
				_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","items":[{%s}]}`, pod)
			default:
				_, _ = fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1",%s}`, pod)
			}
		}))
		t.Cleanup(pods.Close)
		client, err := gangapi.Client(&rest.Config{Host: pods.URL}, api)
		if err != nil {
			t.Fatal(err)
		}
		one, err := client.CoreV1().Pods("team-a").Get(t.Context(), "rank-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.CoreV1().Pods("team-a").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		watching, err := client.CoreV1().Pods("team-a").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		added := (<-watching.ResultChan()).Object
		watching.Stop()
		for how, pod := range map[string]any{"get": one, "list": &list.Items[0], "watch": added} {
			if text := fmt.Sprintf("%+v", pod); !strings.Contains(text, "SchedulingGroup:&PodSchedulingGroup{") {
				t.Errorf("%s, by %s: the pod has no group: %s", api, how, text)
			}
		}
	}
}
