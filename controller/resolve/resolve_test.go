package resolve_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller"
	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// team is the namespace of the job, system that of the controller.
const team, system = "team-a", "lockstep-system"

// made returns the creation time of the JobSet.
func made() time.Time { return time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC) }

// job names a runtime by name alone.
func job() *trainerv1alpha1.TrainJob {
	return &trainerv1alpha1.TrainJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "train", UID: "train-uid"},
		Spec:       trainerv1alpha1.TrainJobSpec{RuntimeRef: trainerv1alpha1.RuntimeRef{Name: "torch"}},
	}
}

// torch is a runtime of so many nodes, by which tests tell one from another.
func torch(nodes int32) *trainerv1alpha1.ClusterTrainingRuntime {
	out := &trainerv1alpha1.ClusterTrainingRuntime{
		TypeMeta: metav1.TypeMeta{
			APIVersion: trainerv1alpha1.GroupVersion().String(),
			Kind:       trainerv1alpha1.ClusterTrainingRuntimeKind,
		},
		ObjectMeta: metav1.ObjectMeta{Name: "torch"},
	}
	out.Spec.MLPolicy = &trainerv1alpha1.MLPolicy{NumNodes: new(nodes)}
	return out
}

// frozen is the state of the job with a runtime.
func frozen(t *testing.T, of client.Object) *statev1alpha1.FrozenTrainJob {
	t.Helper()
	return &statev1alpha1.FrozenTrainJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "train-uid"},
		Spec:       statev1alpha1.FrozenTrainJobSpec{Runtime: runtime.RawExtension{Raw: encoded(t, of)}},
	}
}

func encoded(t *testing.T, of any) []byte {
	t.Helper()
	content, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// jobSet is that of the job, of an earlier version of the controller.
func jobSet() *jobsetv1alpha2.JobSet {
	return &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: team, Name: "train", CreationTimestamp: metav1.NewTime(made()), OwnerReferences: references(),
	}}
}

// copied is the copy that this version makes of a runtime of the job.
func copied(t *testing.T, of client.Object) *corev1.ConfigMap {
	t.Helper()
	out, err := resolve.Copy(job(), frozen(t, of))
	if err != nil {
		t.Fatal(err)
	}
	out.CreationTimestamp = metav1.NewTime(made())
	out.OwnerReferences = references()
	return out
}

// references name the job as the controller.
func references() []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(job(), plan.TrainJobKind())}
}

// cluster is an API server with these objects.
func cluster(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := controller.Scheme(gangapi.Native)
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// nodes is the number of nodes of the runtime that was found.
func nodes(t *testing.T, of resolve.Found) int32 {
	t.Helper()
	policy := of.Runtime.Spec.MLPolicy
	if policy == nil || policy.NumNodes == nil {
		t.Fatalf("the runtime has no nodes: %+v", of)
	}
	return *policy.NumNodes
}

func TestReferenceOf_Defaults(t *testing.T) {
	for name, c := range map[string]struct {
		group, kind *string
		want        resolve.Reference
	}{
		"a name alone is of the whole cluster": {nil, nil, resolve.Reference{
			Group: trainerv1alpha1.Group, Kind: "ClusterTrainingRuntime", Key: types.NamespacedName{Name: "torch"},
		}},
		"empty words are as good as none": {new(""), new(""), resolve.Reference{
			Group: trainerv1alpha1.Group, Kind: "ClusterTrainingRuntime", Key: types.NamespacedName{Name: "torch"},
		}},
		"a TrainingRuntime is beside the job": {nil, new("TrainingRuntime"), resolve.Reference{
			Group: trainerv1alpha1.Group, Kind: "TrainingRuntime", Key: types.NamespacedName{Namespace: team, Name: "torch"},
		}},
		"another group is named as it is": {new("example.com"), new("Recipe"), resolve.Reference{
			Group: "example.com", Kind: "Recipe", Key: types.NamespacedName{Name: "torch"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			of := job()
			of.Spec.RuntimeRef.APIGroup, of.Spec.RuntimeRef.Kind = c.group, c.kind
			if diff := cmp.Diff(c.want, resolve.ReferenceOf(of)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFind_RuntimeOfTheCluster(t *testing.T) {
	full := cluster(t, torch(2))
	for name, reads := range map[string]client.Client{"cache": full, "cache that lags": cluster(t)} {
		found, err := resolve.New(reads, full, system).Find(t.Context(), job())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if nodes(t, found) != 2 || found.Frozen != nil || found.Decisions != nil || found.Adopted || found.Live == nil {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

func TestFind_Faults(t *testing.T) {
	other := torch(2)
	other.Name = "other"
	for name, c := range map[string]struct {
		kind    *string
		objects []client.Object
		want    error
		says    string
	}{
		"no runtime":                 {nil, nil, resolve.ErrMissing, "ClusterTrainingRuntime torch"},
		"one of another kind":        {new("TrainingRuntime"), []client.Object{torch(2)}, resolve.ErrMissing, "TrainingRuntime team-a/torch"},
		"unknown kind":               {new("Recipe"), []client.Object{torch(2)}, resolve.ErrUnknown, "Recipe"},
		"state of another runtime":   {nil, []client.Object{torch(2), frozen(t, other)}, resolve.ErrFrozen, "delete FrozenTrainJob lockstep-system/train-uid"},
		"state that cannot be read":  {nil, []client.Object{torch(2), frozen(t, nil)}, resolve.ErrFrozen, "ConfigMap team-a/train-runtime-snapshot"},
		"state of the other kind":    {new("TrainingRuntime"), []client.Object{frozen(t, torch(2))}, resolve.ErrFrozen, "refers to TrainingRuntime team-a/torch"},
		"state of a job without one": {nil, []client.Object{stateOf("another-uid", frozen(t, torch(9)))}, resolve.ErrMissing, "torch"},
	} {
		t.Run(name, func(t *testing.T) {
			of, reads := job(), cluster(t, c.objects...)
			of.Spec.RuntimeRef.Kind = c.kind
			_, err := resolve.New(reads, reads, system).Find(t.Context(), of)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v that says %q", err, c.want, c.says)
			}
		})
	}
}

// stateOf is a state of another job.
func stateOf(uid string, state *statev1alpha1.FrozenTrainJob) *statev1alpha1.FrozenTrainJob {
	state.Name = uid
	return state
}

// A job retains the runtime that was frozen, whatever its runtime says today, and although the cache does not have it
// yet.
func TestFind_FrozenRuntimeWins(t *testing.T) {
	live := cluster(t, torch(2), frozen(t, torch(7)))
	for name, reads := range map[string]client.Client{"cache": live, "cache that lags": cluster(t, torch(2))} {
		found, err := resolve.New(reads, live, system).Find(t.Context(), job())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if nodes(t, found) != 7 || found.Frozen == nil || found.Decisions == nil || found.Live != nil {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// Two jobs share a parsed runtime, but only if both refer to it.
func TestFind_MemoryIsOfOneRuntime(t *testing.T) {
	reads := cluster(t, frozen(t, torch(7)))
	finds := resolve.New(reads, reads, system)
	if _, err := finds.Find(t.Context(), job()); err != nil {
		t.Fatal(err)
	}
	of := job()
	of.Spec.RuntimeRef.Name = "other"
	if found, err := finds.Find(t.Context(), of); !errors.Is(err, resolve.ErrFrozen) {
		t.Errorf("a job of another runtime: %+v, %v", found, err)
	}
}
