package operators_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/live/operators"
)

// whole is the size of gangs that fit, large of one for which no clique has nodes enough.
const (
	whole = 4
	large = 40
)

// Gangs of each kind, made by its own controller: one is placed whole in one clique with its ranks in order, recovers
// from the loss of a member as its owner has it, and is deleted with its owner; one that is too large waits, and
// reports why.
func TestKinds(t *testing.T) {
	var rows []row
	for _, kind := range kinds() {
		t.Run(kind.name, func(t *testing.T) {
			if kind.gate != "" && probe.Mode(*mode) == probe.Resources {
				t.Skip("the cluster has no feature gates")
			}
			prepare(t, kind)
			seen := row{kind: kind}
			t.Run("whole", func(t *testing.T) { placedWhole(t, &seen) })
			t.Run("large", func(t *testing.T) { tooLarge(t, &seen) })
			rows = append(rows, seen)
		})
	}
	publish(t, rows)
}

// Where Lockstep stores gangs in custom resources, pods in Kubernetes' own PodGroups are gangs, too.
func TestNative(t *testing.T) {
	if !*native {
		t.Skip("the API server does not serve them beside custom resources; -args -mode resources -native has it do so")
	}
	seen := row{kind: kind{
		name: "podgroup", title: "pods in a PodGroup", by: "the test", dialect: "native", loss: gone,
		owners: owners(resource("podgroups", nativeVersion(), "scheduling.k8s.io"), resource("pods", "v1", "")),
	}}
	t.Run("whole", func(t *testing.T) { placedWhole(t, &seen) })
	t.Run("large", func(t *testing.T) { tooLarge(t, &seen) })
	t.Logf("\n%s", table([]row{seen}))
}

// nativeVersion is the version of Kubernetes' own PodGroups that the release serves.
func nativeVersion() string {
	if *release == "1.36" {
		return "v1alpha2"
	}
	return "v1beta1"
}

// placedWhole plays a gang that fits from its creation to its removal.
func placedWhole(t *testing.T, seen *row) {
	t.Helper()
	gang := create(t, seen.kind, whole)
	gang.running(t, whole)
	gang.inOneClique(t)
	gang.says(t, whole)
	seen.whole = "in one clique"
	seen.order = gang.inOrder(t)
	gang.lose(t)
	gang.inOneClique(t)
	seen.lost = string(seen.loss)
	gang.remove(t)
	seen.removed = "all gone"
}

// tooLarge plays a gang that fits nowhere.
func tooLarge(t *testing.T, seen *row) {
	t.Helper()
	gang := create(t, seen.kind, large)
	gang.waits(t, "40 members")
	if running := gang.pods(t, corev1.PodRunning); len(running) > 0 {
		t.Fatalf("%d of its pods run", len(running))
	}
	gang.remove(t)
	seen.waits = "waits, says why"
}

// prepare brings the cluster to where a kind can be made.
func prepare(t *testing.T, kind kind) {
	t.Helper()
	if slices.Contains(kind.operators, "kubeflow-trainer") {
		dismiss(t)
	}
	if kind.gate != "" {
		if err := shared.Gate(t.Context(), kind.gate); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range kind.operators {
		start(t, operator(name))
	}
}

// operator returns the operator of a name.
func operator(name string) operators.Operator {
	all := operators.All()
	return all[slices.IndexFunc(all, func(o operators.Operator) bool { return o.Name == name })]
}

// start starts an operator for a test.
func start(t *testing.T, operator operators.Operator) {
	t.Helper()
	dir := *built
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("../../..", dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("building %s %s (minutes once)", operator.Name, operator.Module.Version)
	binary, err := operator.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.Start(t.Context(), shared.Cluster, binary); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := operator.Stop(context.WithoutCancel(t.Context()), shared.Cluster); err != nil {
			t.Error(err)
		}
	})
}

// dismiss stops Lockstep's controller for the rest of the tests.
func dismiss(t *testing.T) {
	t.Helper()
	if err := shared.StopController(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := shared.DeleteWebhooks(
		t.Context(),
		controller.MutatingConfiguration,
		controller.ValidatingConfiguration,
	); err != nil {
		t.Fatal(err)
	}
}

// manifest is the objects of a kind for a gang of so many members in a namespace. A document with RANK is one for each
// member, the last first.
func manifest(t *testing.T, kind kind, namespace string, size int) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", kind.name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		if !strings.Contains(document, "RANK") {
			documents = append(documents, document)
			continue
		}
		for rank := range size {
			documents = append(documents, strings.ReplaceAll(document, "RANK", number10(size-1-rank)))
		}
	}
	text := strings.NewReplacer("SIZE", number10(size), "OTHERS", number10(size-1), "HALF", number10(size/2), "VERSION", nativeVersion(), "NAMESPACE", namespace).
		Replace(strings.Join(documents, "\n---\n"))
	if kind.migrated {
		text = migrated(t, text)
	}
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n---\n" + text
}

// migrated returns the output of lockstep migrate for manifests.
func migrated(t *testing.T, text string) string {
	t.Helper()
	var out, notes bytes.Buffer
	code := cli.Run(t.Context(), []string{"migrate", "--tier", "2=nvidia.com/gpu.clique", "-"}, cli.Environment{
		In: strings.NewReader(text), Out: &out, Err: &notes, Clock: clock.RealClock{},
	})
	if code != 0 {
		t.Fatalf("lockstep migrate: %d\n%s", code, notes.String())
	}
	t.Logf("lockstep migrate:\n%s", notes.String())
	return out.String()
}
