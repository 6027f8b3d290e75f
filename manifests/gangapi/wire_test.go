package gangapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applyscheduling "k8s.io/client-go/applyconfigurations/scheduling/v1beta1"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// podServer serves the pods of one namespace in the media type that a client prefers, and counts the answers by their
// type.
type podServer struct {
	pods  []corev1.Pod
	types []string
}

func (s *podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	media := runtime.ContentTypeJSON
	if strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		media = runtime.ContentTypeProtobuf
	}
	s.types = append(s.types, media)
	info, ok := runtime.SerializerInfoForMediaType(clientscheme.Codecs.SupportedMediaTypes(), media)
	if !ok {
		panic(media)
	}
	encoder := clientscheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	if r.URL.Query().Get("watch") == "" {
		var answer runtime.Object = &s.pods[0]
		if strings.HasSuffix(r.URL.Path, "/pods") {
			answer = &corev1.PodList{Items: s.pods}
		}
		w.Header().Set("Content-Type", media)
		if err := encoder.Encode(answer, w); err != nil {
			panic(err)
		}
		return
	}
	streaming := media
	if media == runtime.ContentTypeProtobuf {
		streaming += ";stream=watch"
		info.StreamSerializer.Serializer = protobuf.NewRawSerializer(clientscheme.Scheme, clientscheme.Scheme)
	}
	w.Header().Set("Content-Type", streaming)
	frames := info.StreamSerializer.NewFrameWriter(w)
	for i := range s.pods {
		object, err := runtime.Encode(encoder, &s.pods[i])
		if err != nil {
			panic(err)
		}
		event := &metav1.WatchEvent{Type: string(watch.Added), Object: runtime.RawExtension{Raw: object}}
		if err := clientscheme.Codecs.EncoderForVersion(
			info.StreamSerializer.Serializer, corev1.SchemeGroupVersion,
		).Encode(event, frames); err != nil {
			panic(err)
		}
	}
}

// Pods know their gang in both encodings: informers get protobuf, and every live read does.
func TestClient_PodsKnowTheirGangInEveryEncoding(t *testing.T) {
	labels := map[string]string{gangapi.Label: "labeled"}
	for _, media := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		server := &podServer{pods: []corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Name: "of-label", Labels: labels}},
			{
				ObjectMeta: metav1.ObjectMeta{Name: "of-field", Labels: labels},
				Spec:       corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: new("of-field")}},
			},
			{ObjectMeta: metav1.ObjectMeta{Name: "single"}},
		}}
		want := []string{"labeled", "of-field", ""}
		listening := httptest.NewServer(server)
		t.Cleanup(listening.Close)
		client, err := gangapi.Client(&rest.Config{
			Host: listening.URL, ContentConfig: rest.ContentConfig{ContentType: media, AcceptContentTypes: media},
		}, gangapi.Resources)
		if err != nil {
			t.Fatal(err)
		}
		pods := client.CoreV1().Pods("team-a")
		one, err := pods.Get(t.Context(), "of-label", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		watching, err := pods.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var watched []corev1.Pod
		for event := range watching.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				t.Fatalf("%s: watched a %T: %+v", media, event.Object, event.Object)
			}
			watched = append(watched, *pod)
		}
		if got := fieldsOf(*one); !slices.Equal(got, want[:1]) {
			t.Errorf("%s, get: the groups are %q", media, got)
		}
		if got := fieldsOf(list.Items...); !slices.Equal(got, want) {
			t.Errorf("%s, list: the groups are %q, want %q", media, got, want)
		}
		if got := fieldsOf(watched...); !slices.Equal(got, want) {
			t.Errorf("%s, watch: the groups are %q, want %q", media, got, want)
		}
		if slices.ContainsFunc(server.types, func(sent string) bool { return sent != media }) {
			t.Errorf("%s: the answers were %q", media, server.types)
		}
	}
}

// fieldsOf returns the names in the pods' schedulingGroups, "" where there is none.
func fieldsOf(pods ...corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		name := ""
		if group := pod.Spec.SchedulingGroup; group != nil {
			name = *group.PodGroupName
		}
		names = append(names, name)
	}
	return names
}

// Every verb asks for the custom resource, in JSON, and sends its name: API servers know no protobuf of custom
// resources.
func TestClient_AsksForTheCustomResource(t *testing.T) {
	var asked []string
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/apis"))
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if accept := r.Header.Get(
			"Accept",
		); !strings.HasPrefix(accept, runtime.ContentTypeJSON) ||
			strings.Contains(accept, "protobuf") {
			t.Errorf("%s %s accepts %q", r.Method, r.URL, accept)
		}
		if sent := r.Header.Get(
			"Content-Type",
		); len(body) > 0 &&
			(strings.Contains(sent, "protobuf") || !json.Valid(body)) {
			t.Errorf("%s %s sends %q", r.Method, r.URL, sent)
		}
		if r.Method == http.MethodPost || r.Method == http.MethodPut {
			var sent metav1.TypeMeta
			if err := json.Unmarshal(body, &sent); err != nil ||
				sent.APIVersion != "scheduling.lockstep.dev/v1beta1" || sent.Kind != "PodGroup" {
				t.Errorf("%s %s sends %+v (%v)", r.Method, r.URL, sent, err)
			}
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		kind := "PodGroup"
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/podgroups") {
			kind = "PodGroupList"
		}
		group := fmt.Sprintf(
			`{"kind":%q,"apiVersion":"scheduling.lockstep.dev/v1beta1","metadata":{"name":"gang"}}`,
			kind,
		)
		if r.URL.Query().Get("watch") != "" {
			group = fmt.Sprintf(`{"type":"ADDED","object":%s}`, strings.Replace(group, "PodGroupList", "PodGroup", 1))
		}
		_, _ = fmt.Fprint(w, group) // a disconnected client needs no answer
	}))
	t.Cleanup(listening.Close)
	client, err := gangapi.Client(&rest.Config{
		Host: listening.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf},
	}, gangapi.Resources)
	if err != nil {
		t.Fatal(err)
	}
	groups := client.SchedulingV1beta1().PodGroups("team-a")
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "gang"}}
	const one, all = "/scheduling.lockstep.dev/v1beta1/namespaces/team-a/podgroups/gang", "/scheduling.lockstep.dev/v1beta1/namespaces/team-a/podgroups"
	for _, c := range []struct {
		ask  func() error
		want string
	}{
		{func() error { _, err := groups.Get(t.Context(), "gang", metav1.GetOptions{}); return err }, "GET " + one},
		{func() error { _, err := groups.List(t.Context(), metav1.ListOptions{}); return err }, "GET " + all},
		{func() error {
			watching, err := groups.Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			defer watching.Stop()
			if event := <-watching.ResultChan(); event.Type != watch.Added {
				return fmt.Errorf("watched %+v", event)
			}
			return nil
		}, "GET " + all},
		{func() error { _, err := groups.Create(t.Context(), group, metav1.CreateOptions{}); return err }, "POST " + all},
		{func() error { _, err := groups.Update(t.Context(), group, metav1.UpdateOptions{}); return err }, "PUT " + one},
		{func() error { _, err := groups.UpdateStatus(t.Context(), group, metav1.UpdateOptions{}); return err }, "PUT " + one + "/status"},
		{func() error { return groups.Delete(t.Context(), "gang", metav1.DeleteOptions{}) }, "DELETE " + one},
		{func() error {
			return groups.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		}, "DELETE " + all},
		{func() error {
			return patched(groups.Patch(t.Context(), "gang", types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{}))
		}, "PATCH " + one},
		{func() error {
			return patched(groups.Patch(t.Context(), "gang", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status"))
		}, "PATCH " + one + "/status"},
	} {
		asked = nil
		if err := c.ask(); err != nil {
			t.Errorf("%s: %v", c.want, err)
		}
		if !slices.Equal(asked, []string{c.want}) {
			t.Errorf("asked %q, want %q", asked, c.want)
		}
	}
}

func patched(_ *schedulingv1beta1.PodGroup, err error) error { return err }

// A server-side apply names the custom resource, although the generated configuration names Kubernetes' own.
func TestClient_Applies(t *testing.T) {
	var sent metav1.TypeMeta
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = fmt.Fprint(
			w,
			`{"kind":"PodGroup","apiVersion":"scheduling.lockstep.dev/v1beta1","metadata":{"name":"gang"}}`,
		)
	}))
	t.Cleanup(listening.Close)
	client, err := gangapi.Client(&rest.Config{Host: listening.URL}, gangapi.Resources)
	if err != nil {
		t.Fatal(err)
	}
	groups := client.SchedulingV1beta1().PodGroups("team-a")
	configuration, options := applyscheduling.PodGroup("gang", "team-a"), metav1.ApplyOptions{FieldManager: "test"}
	for what, apply := range map[string]func() error{
		"spec":   func() error { return patched(groups.Apply(t.Context(), configuration, options)) },
		"status": func() error { return patched(groups.ApplyStatus(t.Context(), configuration, options)) },
	} {
		sent = metav1.TypeMeta{}
		if err := apply(); err != nil || sent.APIVersion != gangapi.Resources.Version().String() {
			t.Errorf("%s: applied %+v (%v)", what, sent, err)
		}
	}
	if *configuration.APIVersion != gangapi.Native.Version().String() {
		t.Errorf("the caller's configuration was changed to %s", *configuration.APIVersion)
	}
}

// A group that is replaced between a conflict and the read after it is another one: nothing is written to it.
func TestPatch_OfAGroupThatIsReplacedMeanwhile(t *testing.T) {
	s := newServer(t)
	client := s.caching(t)
	s.conflicts = 1
	s.stored.UID = "2"
	_, err := client.SchedulingV1beta1().PodGroups("team-a").
		Patch(t.Context(), "gang", types.StrategicMergePatchType, waiting("1"), metav1.PatchOptions{}, "status")
	if want := []string{
		"PUT " + path + "/status",
		"GET " + path,
	}; !apierrors.IsNotFound(err) ||
		!slices.Equal(s.asked, want) {
		t.Errorf("%v after %q, want that it is not there after %q", err, s.asked, want)
	}
	if len(s.stored.Status.Conditions) != 1 {
		t.Errorf("the conditions of the other group are %v", s.stored.Status.Conditions)
	}
}

// A status patch of the custom resource gives the same conditions as one of Kubernetes' own group (here: client-go's
// tracker, which merges by the native type).
func TestPatch_MergesAsKubernetesDoes(t *testing.T) {
	kinds := []string{"PodGroupInitiallyScheduled", "DisruptionTarget", "lockstep.dev/Waiting"}
	condition := rapid.Custom(func(t *rapid.T) metav1.Condition {
		return metav1.Condition{
			Type: rapid.SampledFrom(kinds).Draw(t, "type"),
			Status: rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}).
				Draw(t, "status"),
			Reason: rapid.SampledFrom([]string{"", "NoRoom", "Scheduled"}).Draw(t, "reason"),
		}
	})
	conditions := rapid.SliceOfNDistinct(condition, 0, len(kinds), func(c metav1.Condition) string { return c.Type })
	s := newServer(t)
	rapid.Check(t, func(rt *rapid.T) {
		s.stored.Status.Conditions = conditions.Draw(rt, "stored")
		change := map[string]any{}
		if news := conditions.Draw(rt, "patch"); len(news) > 0 {
			change["conditions"] = news
		}
		if gone := rapid.SampledFrom(append(kinds, "")).Draw(rt, "deleted"); gone != "" && change["conditions"] == nil {
			change["conditions"] = []any{map[string]any{"$patch": "delete", "type": gone}}
		}
		patch, err := json.Marshal(map[string]any{"status": change})
		if err != nil {
			rt.Fatal(err)
		}
		native, err := fake.NewClientset(s.stored.DeepCopy()).SchedulingV1beta1().PodGroups("team-a").
			Patch(t.Context(), "gang", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil {
			rt.Fatal(err)
		}
		custom, err := s.caching(t).SchedulingV1beta1().PodGroups("team-a").
			Patch(t.Context(), "gang", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil {
			rt.Fatal(err)
		}
		if got, want := fmt.Sprint(custom.Status.Conditions), fmt.Sprint(native.Status.Conditions); got != want {
			rt.Errorf("%s makes\n%s, natively\n%s", patch, got, want)
		}
	})
}

// Pods that give an alias of a scheduler are decoded with its first name, before their marks are read.
func TestClientWith_Aliases(t *testing.T) {
	server := &podServer{pods: []corev1.Pod{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "alias"},
			Spec:       corev1.PodSpec{SchedulerName: "scheduler-plugins-scheduler"},
		},
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.PodSpec{SchedulerName: "default-scheduler"}},
	}}
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	client, err := gangapi.ClientWith(&rest.Config{Host: listening.URL}, gangapi.Resources, gangapi.Reading{
		Marks: func(pod *corev1.Pod) (gangapi.Membership, bool) {
			return gangapi.Membership{Group: "marked"}, pod.Spec.SchedulerName == "lockstep-scheduler"
		},
		Aliases: map[string]string{"scheduler-plugins-scheduler": "lockstep-scheduler"},
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Pods("team-a").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fieldsOf(list.Items...); !slices.Equal(got, []string{"marked", ""}) {
		t.Errorf("the groups are %q", got)
	}
	if name := list.Items[0].Spec.SchedulerName; name != "lockstep-scheduler" {
		t.Errorf("its scheduler is %q", name)
	}
}
