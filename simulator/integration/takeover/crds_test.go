package takeover_test

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// theirCRDs is the folder of Kubeflow Trainer's CRDs.
const theirCRDs = folderOfTrainer + "/manifests/base/crds"

// installTheirCRDs leaves nothing of Lockstep's CRDs.
func (s scene) installTheirCRDs() {
	s.t.Helper()
	s.kubectl("", "delete", "--ignore-not-found", "crd", "frozentrainjobs.state.lockstep.dev")
	s.kubectl("", "replace", "-k", theirCRDs)
	s.sameSchemas()
}

// installOurCRDs applies Lockstep's CRDs over those that are there.
func (s scene) installOurCRDs(block string) {
	s.t.Helper()
	s.kubectl(block, "apply", "-f", "manifests/chart/crds")
}

// returnTheirCRDs applies Kubeflow Trainer's CRDs over Lockstep's. Those of runtimes are too large for a client-side
// kubectl apply, which stores a copy in an annotation.
func (s scene) returnTheirCRDs() {
	s.t.Helper()
	out, err := s.tryKubectl("", "apply", "-k", theirCRDs)
	if err == nil || strings.Count(out, "Too long") != 2 ||
		!strings.Contains(out, "trainjobs.trainer.kubeflow.org configured") {
		s.t.Errorf("kubectl apply of Kubeflow Trainer's CRDs: %v\n%s", err, out)
	}
	s.kubectl("their-crds", "apply", "--server-side", "--force-conflicts", "-k", theirCRDs)
	s.sameSchemas()
}

// sameSchemas fails the test unless the schemas in the cluster are those of Kubeflow Trainer's CRDs, and nothing of
// ours is left.
func (s scene) sameSchemas() {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.release.Manifests, "crds", "trainer.*.yaml"))
	s.must(err)
	if len(files) != 3 {
		s.t.Fatalf("%s has CRDs in %v", s.release.Version, files)
	}
	for _, file := range files {
		want := readObject(s.t, file)
		got := s.read(resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"), "", want.GetName())
		if diff := cmp.Diff(s.schemas(want), s.schemas(got)); diff != "" {
			s.t.Errorf("%s is not Kubeflow Trainer's (-want +got):\n%.2000s", want.GetName(), diff)
		}
	}
}

// schemas returns the schemas of a CRD's versions as JSON, by name.
func (s scene) schemas(crd *unstructured.Unstructured) map[string]any {
	s.t.Helper()
	found := map[string]any{}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		name, _ := version["name"].(string)
		text, err := json.Marshal(version["schema"])
		s.must(err)
		var schema any
		s.must(json.Unmarshal(text, &schema)) // every number is of one type
		found[name] = schema
	}
	return found
}
