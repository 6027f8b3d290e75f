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
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// scene is a pod, the object that its mark names, and what is read of them.
type scene struct {
	Name   string         `json:"name"`
	Pod    corev1.Pod     `json:"pod"`
	Object map[string]any `json:"object"`
	Want   reading        `json:"want"`
}

// reading is what is read of a marked pod; empty for a pod without a mark.
type reading struct {
	Dialect  string            `json:"dialect,omitempty"`
	PodGroup string            `json:"podGroup,omitempty"`
	Source   string            `json:"source,omitempty"`
	Minimum  int               `json:"minimum,omitempty"`
	Wishes   map[string]string `json:"wishes,omitempty"`
	Rank     *int              `json:"rank,omitempty"`
	OnLoss   dialects.Loss     `json:"onLoss,omitempty"`
	// Error is a part of what is said of a size that cannot be read.
	Error string `json:"error,omitempty"`
}

func builtin() dialects.Table {
	explicit, owners := dialects.Builtin()
	return slices.Concat(explicit, owners)
}

// Each dialect reads what its controllers write.
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
	mark, marked := builtin().Read(&s.Pod)
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
		mark, _ := builtin().Read(pod)
		again, _ := builtin().Read(pod)
		if mark.PodGroup != again.PodGroup || len(mark.PodGroup) > 253 || !strings.HasPrefix(mark.PodGroup, "kueue.") {
			t.Errorf("group %q is %q, and then %q", group, mark.PodGroup, again.PodGroup)
		}
		if other, taken := names[mark.PodGroup]; taken {
			t.Errorf("groups %q and %q are both %q", group, other, mark.PodGroup)
		}
		names[mark.PodGroup] = group
	}
}

// No dialect takes over what Lockstep's controllers state about gangs.
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
	mark, _ := builtin().Read(pod)
	group, err := mark.Describe(pod, object)
	if err != nil || len(group.Wishes) > 0 {
		t.Errorf("it takes over %v (%v)", slices.Sorted(maps.Keys(group.Wishes)), err)
	}
}
