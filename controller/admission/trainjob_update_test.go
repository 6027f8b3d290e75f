package admission_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/admission"
)

func TestValidator_Update(t *testing.T) {
	const forbidden = "spec.runtimePatches: Forbidden: RuntimePatches can"
	const never = forbidden + " only be modified when the TrainJob is suspended before or after the update"
	const wasMissing = `spec.runtimeRef: Invalid value: "rt": runtime rt: the runtime does not exist: ` +
		`specified clusterTrainingRuntime must be created before the TrainJob is created`
	active := &jobsetv1alpha2.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"},
		Status: jobsetv1alpha2.JobSetStatus{ReplicatedJobsStatus: []jobsetv1alpha2.ReplicatedJobStatus{
			{Name: "first", Ready: 1}, {Name: "node", Active: 1},
		}},
	}
	for name, c := range map[string]struct {
		runtimes  admission.Runtimes
		jobSet    client.Object
		old, next []change
		want      string
	}{
		"nothing changes and the runtime is gone": {runtimes: missing()},
		"suspension with the runtime gone":        {runtimes: missing(), old: []change{running}, next: []change{suspended}},
		"a label of a job at fault":               {runtimes: there(t), old: []change{noNodes}, next: []change{noNodes, labeled}},
		"a job being deleted": {
			runtimes: missing(), old: []change{deleting}, next: []change{deleting, noNodes},
		},
		"a change of the spec with the runtime gone": {
			runtimes: missing(), old: []change{suspended}, next: []change{suspended, patchedBy("a.io/b", "node")}, want: wasMissing,
		},
		"a change that brings a fault": {
			runtimes: there(t), next: []change{noNodes}, want: "spec.trainer.numNodes: Invalid value: 0: must be at least 1",
		},
		"Kueue clears its patch of a job at fault": {
			runtimes: there(t), next: []change{noNodes, suspended},
			old: []change{noNodes, suspended, patchedBy("kueue.x-k8s.io/manager", "node")},
		},
		"an annotation of ours that does not exist": {
			runtimes: there(t), old: []change{running}, next: []change{running, annotated("lockstep.dev/gnag", "on")},
			want: "metadata.annotations[lockstep.dev/gnag]: Invalid value: \"on\": there is no such annotation; there are ",
		},
		"an annotation of ours with a value that is none": {
			runtimes: there(t), next: []change{annotated("lockstep.dev/gang", "yes")},
			want: `metadata.annotations[lockstep.dev/gang]: Invalid value: "yes": must be one of on, off`,
		},
		"an annotation of ours with the runtime gone": {
			runtimes: missing(), next: []change{annotated("lockstep.dev/gang", "yes")},
		},
		"a queue of Kueue's for a job with claims": {
			runtimes: there(t), old: []change{claiming}, next: []change{claiming, queued},
			want: "spec.trainer.resourceClaimsPerNode: Invalid value: \"gpus\": the job is queued by Kueue " +
				"(label kueue.x-k8s.io/queue-name is research), which does not know the field and would count no devices; put the " +
				"claims into the pods of a runtime, or ask for the extended resource of their class in resourcesPerNode",
		},
		"somebody else's annotation": {runtimes: missing(), next: []change{annotated("acme.io/a", "b")}},
		"a patch for a running job": {
			runtimes: there(t), old: []change{running}, next: []change{running, patchedBy("a.io/b", "node")}, want: never,
		},
		"a patch for a job that says nothing of suspension": {
			runtimes: there(t), next: []change{patchedBy("a.io/b", "node")}, want: never,
		},
		"a patch and the start in one, as Kueue does": {
			runtimes: there(t), old: []change{suspended}, next: []change{running, patchedBy("a.io/b", "node")},
		},
		"a patch and suspension in one": {
			runtimes: there(t), old: []change{running}, next: []change{suspended, patchedBy("a.io/b", "node")},
		},
		"a patch for a suspended job whose pods still run": {
			runtimes: there(t), jobSet: active, old: []change{suspended},
			next: []change{suspended, patchedBy("a.io/b", "node")},
			want: forbidden + "not be modified when the JobSet's ReplicatedJob node is still active",
		},
		"suspension of a job whose pods run": {
			runtimes: there(t), jobSet: active, old: []change{running, patchedBy("a.io/b", "node")},
			next: []change{suspended, patchedBy("a.io/b", "node")},
		},
		"a size for a running job": {
			runtimes: there(t), old: []change{running, nodes(2)}, next: []change{running, nodes(4)},
			want: "spec.trainer: Forbidden: numNodes and resourcesPerNode can only be modified when the TrainJob is suspended before or after the update",
		},
		"a size for a suspended job whose pods still run": {
			runtimes: there(t), jobSet: active, old: []change{suspended, nodes(2)}, next: []change{suspended, nodes(4)},
			want: "spec.trainer: Forbidden: numNodes and resourcesPerNode cannot be modified when the JobSet's ReplicatedJob node is still active",
		},
		"another priority for a suspended job": {
			runtimes: there(t), jobSet: classOf("high"), old: []change{suspended},
			next: []change{suspended, annotated("lockstep.dev/priority-class", "high")},
		},
		"another priority for a running job": {
			runtimes: there(t), jobSet: classOf("high"), old: []change{running},
			next: []change{running, annotated("lockstep.dev/priority-class", "high")},
			want: "metadata.annotations[lockstep.dev/priority-class]: Forbidden: The priority class can only be modified when the TrainJob " +
				"is suspended before or after the update",
		},
		"a priority that does not exist": {
			runtimes: there(t), old: []change{suspended}, next: []change{suspended, annotated("lockstep.dev/priority-class", "high")},
			want: `metadata.annotations[lockstep.dev/priority-class]: Invalid value: "high": PriorityClass "high" doesn't exist: ` +
				`priorityclasses.scheduling.k8s.io "high" not found`,
		},
		"a priority of a patch that does not exist": {
			runtimes: there(t), old: []change{suspended}, next: []change{suspended, prioritizedBy("a.io/b", "high")},
			want: `metadata.annotations[lockstep.dev/priority-class]: Invalid value: "high": PriorityClass "high" doesn't exist: ` +
				`priorityclasses.scheduling.k8s.io "high" not found`,
		},
		"a priority of a patch that exists": {
			runtimes: there(t), jobSet: classOf("high"), old: []change{suspended},
			next: []change{suspended, prioritizedBy("a.io/b", "high")},
		},
		"a running job names the priority that its runtime names": {
			runtimes: annotating(t, "lockstep.dev/priority-class", "high"), old: []change{running},
			next: []change{running, annotated("lockstep.dev/priority-class", "high")},
		},
		"a running job leaves its priority to its runtime": {
			runtimes: annotating(t, "lockstep.dev/priority-class", "high"), jobSet: classOf("high"),
			old: []change{running, annotated("lockstep.dev/priority-class", "")}, next: []change{running},
			want: "metadata.annotations[lockstep.dev/priority-class]: Forbidden: The priority class can only be modified when the TrainJob " +
				"is suspended before or after the update",
		},
		"another priority for a running job with the runtime gone": {
			runtimes: missing(), old: []change{running},
			next: []change{running, annotated("lockstep.dev/priority-class", "high")},
			want: "metadata.annotations[lockstep.dev/priority-class]: Forbidden: The priority class can only be modified when the TrainJob " +
				"is suspended before or after the update",
		},
		"a size for a suspended job": {runtimes: there(t), old: []change{suspended, nodes(2)}, next: []change{suspended, nodes(4)}},
		"a size with a fault": {
			runtimes: there(t), old: []change{suspended, nodes(2)}, next: []change{suspended, noNodes},
			want: "spec.trainer.numNodes: Invalid value: 0: must be at least 1",
		},
		"a patch with a fault": {
			runtimes: there(t), old: []change{suspended}, next: []change{suspended, patchedBy("a.io/b", "other")},
			want: "spec.runtimePatches: Invalid value: \"other\": must not have replicated job that doesn't exist in the " +
				"runtime job template",
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			var objects []client.Object
			if c.jobSet != nil {
				objects = append(objects, c.jobSet)
			}
			got, err := newValidator(
				t,
				c.runtimes,
				objects...).Update(t.Context(), trainJob(c.old...), trainJob(c.next...))
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, c.want, "")
		})
	}
}
