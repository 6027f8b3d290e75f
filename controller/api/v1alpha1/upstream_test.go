package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// upstream is the module with the CRDs that ours are compared with. It is fetched for this test only: its Go types do
// not compile against our Kubernetes, its manifests are plain text.
const upstream = "github.com/kubeflow/trainer/v2@v2.3.0"

// allowed is a difference between upstream's CRDs and ours that is meant.
type allowed struct {
	// path is a regular expression for the whole path, as difference has it.
	path string
	// addition allows only fields that upstream does not have at all.
	addition bool
	reason   string
}

// allowedDifferences returns all permitted differences. Any other difference fails, and so does a line that matches
// nothing.
func allowedDifferences() []allowed {
	const (
		pod      = `.*\.template\.spec\.template\.spec`
		anyC     = pod + `\.(containers|initContainers|ephemeralContainers)\[\]`
		volume   = pod + `\.volumes\[\]`
		newer    = "Kubernetes 0.37 has this field and 0.36, with which upstream is built, has not (read off both k8s.io/api)."
		sameRule = "The rule accepts and refuses the same, with the same message; it is written in our words."
	)
	return []allowed{
		{path: `v2alpha1`, addition: true, reason: "We also serve v2alpha1, the same schema by another name, because " +
			"upstream's guide to RuntimePatches uses it."},
		{
			path:     `.*/schema/\.spec\.ttlSecondsAfterFinished`,
			addition: true,
			reason:   "KEP-2899 of upstream's has it, its 2.3 has not.",
		},
		{path: `conversion`, addition: true, reason: "None is the default; with two versions we say it."},
		{path: `.*\.mlPolicy#x-kubernetes-validations`, reason: sameRule},
		{path: `.*\.envInjection\.targets\[\]\.containerNames#x-kubernetes-validations`, reason: sameRule},
		{path: anyC + `\.volumeMounts\[\]\.bindMountOptions`, addition: true, reason: newer},
		{path: anyC + `\.\w+Probe\.(httpGet\.protocol|grpc\.mode)`, addition: true, reason: newer},
		{path: anyC + `\.lifecycle\.(postStart|preStop)\.httpGet\.protocol`, addition: true, reason: newer},
		{path: volume + `\.(configMap|secret|downwardAPI|projected)\.defaultUser`, addition: true, reason: newer},
		{path: volume + `\.(configMap|secret|downwardAPI)\.items\[\]\.user`, addition: true, reason: newer},
		{
			path:     volume + `\.projected\.sources\[\]\.(configMap|secret|downwardAPI)\.items\[\]\.user`,
			addition: true, reason: newer,
		},
		{
			path:     volume + `\.projected\.sources\[\]\.(clusterTrustBundle|podCertificate|serviceAccountToken)\.user`,
			addition: true,
			reason:   newer,
		},
		{
			path:     `.*/schema/\.spec#x-kubernetes-validations`,
			addition: true,
			reason: "What is immutable can be taken away and put back otherwise at upstream: its rules compare what is there twice. " +
				"Of runtimes: scheduling excludes podGroupPolicy.",
		},
		{
			path:     `.*/schema/\.spec\.scheduling`,
			addition: true,
			reason: "Upstream's design for native gang scheduling (KEP-3015), which comes after 2.3; a runtime without it is as " +
				"it was.",
		},
		{
			path:     `.*/schema/\.status\.scheduling`,
			addition: true,
			reason:   "Where a job is and what it waits for; status.conditions stay upstream's three.",
		},
		{
			path:   `.*/additionalPrinterColumns`,
			reason: "They say that, too. Upstream's State is the last condition: Suspended for a job that was resumed and runs.",
		},
		{
			path:     `.*/schema/\.spec\.trainer\.resourceClaimsPerNode`,
			addition: true,
			reason:   "Upstream's design for devices (KEP-2782), which comes after 2.3; a job without it is as it was.",
		},
		{
			path: `.*/schema/\.spec\.trainer(\.\w+)?#x-kubernetes-validations`,
			reason: "numNodes and resourcesPerNode may change while a job is suspended (upstream's #3995), since a suspended JobSet is " +
				"replaced; each other field has the rule that upstream has for all.",
		},
		{
			path: `.*\.runtimePatches\[\].*\.(serviceAccountName|volumes)#x-kubernetes-validations`,
			reason: "They may change while a job is suspended, since a suspended JobSet is replaced. The webhook refuses it of a job " +
				"that runs.",
		},
		{
			path: `.*/schema/\.spec\.managedBy#x-kubernetes-validations`,
			reason: "lockstep.dev/trainjob-controller is let in too: where both controllers run, it marks Lockstep's jobs, which upstream's " +
				"(2.3) leaves alone.",
		},
		{path: volume + `\.emptyDir\.mode`, addition: true, reason: newer},
		{path: pod + `\.evictionResponders`, addition: true, reason: newer},
		{path: `.*\.replicatedJobs\[\]\.template\.spec\.scheduling`, addition: true, reason: newer},
		{
			path:     `.*\.volumeClaimPolicies\[\]\.templates\[\]\.status\.healthStatus`,
			addition: true, reason: newer,
		},
	}
}

// TestCRD_MatchesUpstreamSchema compares our CRDs with upstream's: everything of a CRD's spec but the descriptions.
func TestCRD_MatchesUpstreamSchema(t *testing.T) {
	folder := filepath.Join(download(t, upstream), "manifests", "base", "crds")
	table := allowedDifferences()
	used := make([]bool, len(table))
	for _, kind := range []string{"trainjobs", "trainingruntimes", "clustertrainingruntimes"} {
		file := "trainer.kubeflow.org_" + kind + ".yaml"
		theirs, ours := readSpec(t, filepath.Join(folder, file)), readSpec(t, filepath.Join(manifests, file))
		var found []difference
		found = append(found, compareValues("", theirs.rest, ours.rest)...)
		for version, content := range ours.versions {
			if theirs.versions[version] == nil {
				found = append(found, difference{path: version, ours: "a version"})
			}
			found = append(found, compareValues(version, theirs.versions["v1alpha1"], content)...)
		}
		for _, d := range found {
			i := slices.IndexFunc(table, d.isAllowed)
			if i < 0 {
				t.Errorf("%s: %s: upstream has %s, we have %s", kind, d.path, brief(d.theirs), brief(d.ours))
				continue
			}
			used[i] = true
		}
	}
	for i, line := range table {
		if !used[i] {
			t.Errorf("no difference matches the line %q (%s): remove it", line.path, line.reason)
		}
	}
}

// difference is a place where two CRDs differ. In paths .a is a property, [] the items of a list, {} the values of a
// map, and #word a word of the schema.
type difference struct {
	path         string
	theirs, ours any
}

func (d difference) isAllowed(line allowed) bool {
	return regexp.MustCompile("^(?:"+line.path+")$").MatchString(d.path) && (!line.addition || d.theirs == nil)
}

// crdSpec is the spec of a CRD. Versions are without name and storage, which our second version has of its own.
type crdSpec struct {
	rest     map[string]any
	versions map[string]any
}

func readSpec(t *testing.T, file string) crdSpec {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
	}
	if err = yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	result := crdSpec{rest: crd.Spec, versions: map[string]any{}}
	versions, ok := crd.Spec["versions"].([]any)
	if !ok {
		t.Fatalf("%s has no versions", file)
	}
	for _, version := range versions {
		content, isMap := version.(map[string]any)
		name, isText := content["name"].(string)
		if !isMap || !isText {
			t.Fatalf("%s has a version without a name", file)
		}
		delete(content, "name")
		delete(content, "storage") // TestCRD_BothVersionsAreServed checks it
		result.versions[name] = content
	}
	delete(result.rest, "versions")
	result.rest["metadata.name"] = crd.Metadata.Name
	return result
}

// compareValues compares two trees outside of a schema, and compares schemas where it finds them.
func compareValues(path string, theirs, ours any) []difference {
	a, isMap := theirs.(map[string]any)
	b, bothMaps := ours.(map[string]any)
	if !isMap || !bothMaps {
		if reflect.DeepEqual(theirs, ours) {
			return nil
		}
		return []difference{{path: path, theirs: theirs, ours: ours}}
	}
	var found []difference
	for _, key := range keysOf(a, b) {
		if key == "openAPIV3Schema" {
			found = append(found, compareSchemas(path+"/", a[key], b[key])...)
			continue
		}
		inner := key
		if path != "" {
			inner = path + "/" + key
		}
		found = append(found, compareValues(inner, a[key], b[key])...)
	}
	return found
}

// compareSchemas compares two schemas word by word. A schema that only one side has is one difference, not a hundred.
func compareSchemas(path string, theirs, ours any) []difference {
	a, isMap := theirs.(map[string]any)
	b, bothMaps := ours.(map[string]any)
	if !isMap || !bothMaps {
		if reflect.DeepEqual(theirs, ours) {
			return nil
		}
		return []difference{{path: path, theirs: theirs, ours: ours}}
	}
	var found []difference
	for _, word := range keysOf(a, b) {
		switch word {
		case "description":
		case "properties":
			theirs, _ := a[word].(map[string]any)
			ours, _ := b[word].(map[string]any)
			for _, name := range keysOf(theirs, ours) {
				found = append(found, compareSchemas(path+"."+name, theirs[name], ours[name])...)
			}
		case "items":
			found = append(found, compareSchemas(path+"[]", a[word], b[word])...)
		case "additionalProperties":
			found = append(found, compareSchemas(path+"{}", a[word], b[word])...)
		case "required", "enum":
			if !reflect.DeepEqual(asSet(a[word]), asSet(b[word])) {
				found = append(found, difference{path: path + "#" + word, theirs: a[word], ours: b[word]})
			}
		default:
			if !reflect.DeepEqual(a[word], b[word]) {
				found = append(found, difference{path: path + "#" + word, theirs: a[word], ours: b[word]})
			}
		}
	}
	return found
}

func keysOf(a, b map[string]any) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// asSet returns a list as a set: its order has no meaning.
func asSet(value any) []string {
	list, _ := value.([]any)
	set := make([]string, 0, len(list))
	for _, item := range list {
		set = append(set, fmt.Sprint(item))
	}
	slices.Sort(set)
	return set
}

func brief(value any) string {
	if value == nil {
		return "nothing"
	}
	text := fmt.Sprint(value)
	return text[:min(200, len(text))]
}

// download fetches a module into the module cache and returns its folder. Our own go.mod is not touched.
func download(t *testing.T, module string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	output, err := command.Output()
	var answer struct{ Dir, Error string }
	_ = json.Unmarshal(output, &answer) // the error is reported below
	if err != nil || answer.Dir == "" {
		t.Fatalf("cannot compare with upstream: go mod download %s: %v: %s; this test needs the Go module proxy once",
			module, err, answer.Error)
	}
	return answer.Dir
}
