package dialects_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// scene is a pod, the object that its mark names, and the expected reading.
type scene struct {
	Name   string         `json:"name"`
	Pod    corev1.Pod     `json:"pod"`
	Object map[string]any `json:"object"`
	Want   reading        `json:"want"`
}

// reading has all that dialects read of a marked pod; empty for a pod without a mark.
type reading struct {
	Dialect  string            `json:"dialect,omitempty"`
	PodGroup string            `json:"podGroup,omitempty"`
	Source   string            `json:"source,omitempty"`
	Minimum  int               `json:"minimum,omitempty"`
	Wishes   map[string]string `json:"wishes,omitempty"`
	Rank     *int              `json:"rank,omitempty"`
	OnLoss   dialects.Loss     `json:"onLoss,omitempty"`
	// Error is a part of the message about a size that cannot be read.
	Error string `json:"error,omitempty"`
}

// rows are the dialects that ship as configuration.
const rows = "../../manifests/dialects"

// all has the dialects that are built in, and all that ship as configuration.
func all(t *testing.T) dialects.Table {
	t.Helper()
	table, owners := dialects.Builtin()
	table = slices.Concat(dialects.Table{dialects.Native("v1alpha2")}, table)
	files, err := filepath.Glob(filepath.Join(rows, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dialects (%v)", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		const most = 15
		if lines := strings.Count(string(content), "\n"); lines > most {
			t.Errorf("%s has %d lines, want at most %d", file, lines, most)
		}
		var row dialects.Row
		if err := yaml.UnmarshalStrict(content, &row); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		dialect, err := dialects.Configured(row)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		table = append(table, dialect)
	}
	return slices.Concat(table, owners)
}

// A row that is no dialect is refused, with the field and the remedy.
func TestConfigured_RefusesWhatIsNoDialect(t *testing.T) {
	for row, says := range map[string]string{
		"{name: My_Kind, member: {labels: [a]}, minimum: '1'}":                                      `name "My_Kind"`,
		"{name: a, minimum: '1'}":                                                                   "member: name the labels",
		"{name: a, member: {labels: [a]}}":                                                          "minimum: say how many",
		"{name: a, member: {labels: [a]}, minimum: object.spec.size}":                               "undeclared reference to 'object'",
		"{name: a, member: {labels: [a]}, minimum: '\"3\"'}":                                        "minimum is of type string, and must be of type int",
		"{name: a, member: {labels: [a]}, minimum: '1 +'}":                                          "minimum: ERROR",
		"{name: a, member: {labels: [a]}, minimum: '1', object: {resource: podgroups}}":             "write PLURAL.VERSION.GROUP",
		"{name: a, member: {labels: [a]}, minimum: '1', onLoss: x}":                                 `onLoss "x": use replaced, restarted or gone`,
		"{name: a, member: {labels: [a]}, minimum: '1', wishes: {lockstep.dev/queued-at: '\"x\"'}}": "lockstep.dev/queued-at is no wish",
		"{name: a, member: {labels: [a]}, minimum: '1', rank: 'pod.x +'}":                           "rank: ERROR",
	} {
		var of dialects.Row
		if err := yaml.UnmarshalStrict([]byte(row), &of); err != nil {
			t.Fatal(err)
		}
		_, err := dialects.Configured(of)
		if !errors.Is(err, dialects.ErrRow) || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", row, err, says)
		}
	}
}

// An expression without end is cut off, and says so as a size that cannot be read.
func TestConfigured_LimitsExpressions(t *testing.T) {
	const long = "[1,2,3,4,5,6,7,8,9,10]"
	row := dialects.Row{
		Name: "slow", Member: dialects.Keys{Labels: []string{"a"}},
		Minimum: strings.Repeat(long+".map(x, ", 6) + "x" + strings.Repeat(").map(y, 1).size()", 6),
	}
	dialect, err := dialects.Configured(row)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dialect.Minimum(&corev1.Pod{}, nil); !errors.Is(err, dialects.ErrNoSize) {
		t.Errorf("it ends with %v", err)
	}
}

// Each dialect reads the marks that its controllers write.
func TestTable_Read(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files with scenes (%v)", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var scenes []scene
		if err := yaml.UnmarshalStrict(content, &scenes); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range scenes {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+scenes[i].Name, func(t *testing.T) {
				if got, want := asText(t, read(t, &scenes[i])), asText(t, scenes[i].Want); got != want {
					t.Errorf("read:\n%swant:\n%s", got, want)
				}
			})
		}
	}
}

func read(t *testing.T, s *scene) reading {
	t.Helper()
	mark, marked := all(t).Read(&s.Pod)
	if !marked {
		return reading{}
	}
	got := reading{Dialect: mark.Dialect.Name, PodGroup: mark.PodGroup, OnLoss: mark.Dialect.Loss(&s.Pod)}
	if mark.Dialect.Source != nil {
		source := mark.Dialect.Source(&s.Pod)
		got.Source = source.Resource.GroupResource().String() + "/" + source.Name
	}
	if mark.Dialect.Rank != nil {
		if rank, has := mark.Dialect.Rank(&s.Pod); has {
			got.Rank = &rank
		}
	}
	group, err := mark.Describe(&s.Pod, s.Object)
	if err != nil {
		if !errors.Is(err, dialects.ErrNoSize) || !strings.Contains(err.Error(), s.Want.Error) {
			t.Errorf("it says %v", err)
		}
		got.Error = s.Want.Error
	}
	got.Minimum, got.Wishes = group.Minimum, group.Wishes
	if len(got.Wishes) == 0 {
		got.Wishes = nil
	}
	return got
}

func asText(t *testing.T, what any) string {
	t.Helper()
	text, err := yaml.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Equal names of groups have equal PodGroups, others have others, whatever characters they have.
func TestTable_NamesPodGroups(t *testing.T) {
	names := map[string]string{}
	for _, group := range []string{"a", "A", "a_b", "a-b", strings.Repeat("x", 63), strings.Repeat("x", 300)} {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{"kueue.x-k8s.io/pod-group-name": group}
		mark, _ := all(t).Read(pod)
		again, _ := all(t).Read(pod)
		if mark.PodGroup != again.PodGroup || len(mark.PodGroup) > 253 || !strings.HasPrefix(mark.PodGroup, "kueue.") {
			t.Errorf("group %q is %q, and then %q", group, mark.PodGroup, again.PodGroup)
		}
		if other, taken := names[mark.PodGroup]; taken {
			t.Errorf("groups %q and %q are both %q", group, other, mark.PodGroup)
		}
		names[mark.PodGroup] = group
	}
}

// No dialect copies the annotations in which Lockstep's controllers state facts about gangs.
func TestMark_CopiesNoFacts(t *testing.T) {
	facts := map[string]any{
		"lockstep.dev/queued-at": "x", "lockstep.dev/expected-end": "x", "lockstep.dev/late-members": "x",
		"lockstep.dev/last-checkpoint": "x", "lockstep.dev/reservation": "x", "lockstep.dev/start-patience": "x",
		"lockstep.dev/finished-members": "x", "lockstep.dev/priority-class": "x",
	}
	object := map[string]any{
		"metadata": map[string]any{"annotations": facts},
		"spec":     map[string]any{"minMember": int64(2)},
	}
	pod := &corev1.Pod{}
	pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "g"}
	pod.Annotations = map[string]string{}
	for key := range facts {
		pod.Annotations[key] = "x"
	}
	mark, _ := all(t).Read(pod)
	group, err := mark.Describe(pod, object)
	if err != nil || len(group.Wishes) > 0 {
		t.Errorf("it takes over %v (%v)", slices.Sorted(maps.Keys(group.Wishes)), err)
	}
}

// The gang's reaction to a loss is the least of its members' reactions.
func TestMark_LossOf(t *testing.T) {
	pod := func(owner string) *corev1.Pod {
		made := &corev1.Pod{}
		made.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "g"}
		if owner != "" {
			made.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "o", Controller: new(true)}}
		}
		return made
	}
	for name, c := range map[string]struct {
		owners []string
		want   dialects.Loss
	}{
		"jobs":                      {[]string{"Job", "Job"}, dialects.Replaced},
		"one bare pod":              {[]string{"Job", ""}, dialects.Gone},
		"executors of Spark's pods": {[]string{"SparkApplication", "Pod"}, dialects.Gone},
	} {
		var pods []*corev1.Pod
		for _, owner := range c.owners {
			pods = append(pods, pod(owner))
		}
		mark, _ := all(t).Read(pods[0])
		if got := mark.LossOf(pods); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
