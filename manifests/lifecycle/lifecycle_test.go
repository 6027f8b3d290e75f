package lifecycle_test

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/lifecycle"
)

// group is a PodGroup that is a custom resource.
func group(namespace, name string, finalizers ...string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minCount": int64(2)}}}
	made.SetGroupVersionKind(gangapi.Resources.GroupKind())
	made.SetNamespace(namespace)
	made.SetName(name)
	made.SetFinalizers(finalizers)
	return made
}

// Our finalizer is removed, those of others stay, and a group that changes meanwhile is freed all the same. An API that
// is not served is no error.
func TestLetGo(t *testing.T) {
	lists := map[schema.GroupVersionResource]string{}
	for _, api := range []gangapi.API{gangapi.Resources, gangapi.Native, gangapi.NativeV1} {
		lists[api.Resource()] = "PodGroupList"
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists,
		group("a", "ours", gangapi.Finalizer), group("b", "both", "example.com/theirs", gangapi.Finalizer),
		group("b", "theirs", "example.com/theirs"), group("b", "none"))
	for _, api := range []gangapi.API{gangapi.Native, gangapi.NativeV1} {
		client.PrependReactor("list", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.GetResource() != api.Resource() {
				return false, nil, nil
			}
			return true, nil, apierrors.NewNotFound(api.Resource().GroupResource(), "")
		})
	}
	conflicts := 1
	client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts == 0 {
			return false, nil, nil
		}
		conflicts--
		return true, nil, apierrors.NewConflict(gangapi.Resources.Resource().GroupResource(), "ours", nil)
	})
	var said []string
	if err := lifecycle.LetGo(t.Context(), client, func(line string) { said = append(said, line) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{
		"PodGroups of scheduling.lockstep.dev/v1beta1: 2 had the finalizer",
	}; !slices.Equal(
		said,
		want,
	) {
		t.Errorf("it says %q, want %q", said, want)
	}
	left, err := client.Resource(gangapi.Resources.Resource()).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range left.Items {
		want := ""
		if name := left.Items[i].GetName(); name == "both" || name == "theirs" {
			want = "example.com/theirs"
		}
		if got := strings.Join(left.Items[i].GetFinalizers(), " "); got != want {
			t.Errorf("%s has finalizers %q, want %q", left.Items[i].GetName(), got, want)
		}
	}
}
