package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-project/lockstep/manifests"
)

// objectsOf are the objects of a stream of YAML.
func objectsOf(t *testing.T, content []byte) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

func render(t *testing.T, content []byte, installation manifests.Installation) []byte {
	t.Helper()
	rendered, err := manifests.Render(content, installation)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// Rendered for another namespace and account, nothing of the controller's speaks of the default ones, and every name of a role,
// a policy, the lease or the Service, which the binary knows, is as it was.
func TestRender_ForAnotherInstallation(t *testing.T) {
	other := manifests.Installation{Namespace: "gpu-system", Account: "trainer-bot"}
	for _, folder := range []string{".", "gangs", "controller", "webhooks", "install", "takeover"} {
		files, err := fs.Glob(manifests.Files, folder+"/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			written, err := manifests.Files.ReadFile(strings.TrimPrefix(file, "./"))
			if err != nil {
				t.Fatal(err)
			}
			rendered := render(t, written, other)
			if strings.Contains(string(rendered), "lockstep-system") {
				t.Errorf("%s still names lockstep-system", file)
			}
			before, after := objectsOf(t, written), objectsOf(t, rendered)
			for i := range before {
				isAccount := before[i].GetKind() == "ServiceAccount" && before[i].GetName() == "lockstep-controller"
				if want := map[bool]string{true: "trainer-bot", false: before[i].GetName()}[isAccount]; after[i].GetName() != want &&
					before[i].GetKind() != "Namespace" {
					t.Errorf(
						"%s: %s %s is called %s",
						file,
						before[i].GetKind(),
						before[i].GetName(),
						after[i].GetName(),
					)
				}
				accounts := accountsOf(after[i].Object)
				if strings.Contains(strings.Join(accounts, " "), "lockstep-controller") {
					t.Errorf("%s: %s %s still speaks of %v", file, after[i].GetKind(), after[i].GetName(), accounts)
				}
			}
		}
	}
	if content, err := manifests.Files.ReadFile("controller/policy.yaml"); err != nil ||
		!bytes.Equal(content, render(t, content, manifests.Default())) {
		t.Errorf("rendered for the installation for which it is written, a file changes (%v)", err)
	}
}

// accountsOf are the ServiceAccounts and users of which an object speaks.
func accountsOf(value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		if value["kind"] == "ServiceAccount" && value["name"] != nil {
			found = append(found, fmt.Sprint(value["name"]))
		}
		if name, ok := value["serviceAccountName"]; ok {
			found = append(found, fmt.Sprint(name))
		}
		for _, inner := range value {
			found = append(found, accountsOf(inner)...)
		}
	case []any:
		for _, inner := range value {
			found = append(found, accountsOf(inner)...)
		}
	case string:
		if _, user, ok := strings.Cut(value, "system:serviceaccount:"); ok {
			found = append(found, user)
		}
	}
	return found
}

func TestInstallation_NamesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		installation manifests.Installation
		want         string
	}{
		{manifests.Default(), ""},
		{manifests.Installation{Namespace: "a", Account: "a", Namespaces: []string{"b", "c"}}, ""},
		{manifests.Installation{Namespace: "a", Account: "a", Namespaces: []string{"b", "B"}}, `namespaces: "B"`},
		{manifests.Installation{Namespace: "a", Account: "a", Namespaces: []string{"b", "b"}}, "b is there twice"},
		{manifests.Installation{Namespace: "a.b", Account: "a"}, `namespace "a.b"`},
		{manifests.Installation{Namespace: "a", Account: "x'y"}, `account "x'y"`},
	} {
		err := c.installation.Validate()
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %v, want %q", c.installation, err, c.want)
		}
	}
}
