package plan_test

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// guide has the pod patches of Kubeflow's guide to runtime patches, as of 2.3.
func guide() map[string]string {
	return map[string]string{
		"overview": `{nodeSelector: {accelerator: nvidia-tesla-v100}}`,
		"migration from overrides": `{serviceAccountName: ml-training-sa, nodeSelector: {accelerator: nvidia-tesla-v100},
  volumes: [{name: training-data, persistentVolumeClaim: {claimName: ml-team-training-pvc}}],
  containers: [{name: trainer, volumeMounts: [{name: training-data, mountPath: /workspace/data}]}]}`,
		"structure": `{serviceAccountName: custom-sa, nodeSelector: {accelerator: nvidia-tesla-v100},
  containers: [{name: trainer, volumeMounts: [{name: workspace, mountPath: /workspace}]}],
  volumes: [{name: workspace, persistentVolumeClaim: {claimName: user-pvc}}]}`,
		"account and nodes": `{serviceAccountName: ml-training-sa, nodeSelector: {accelerator: nvidia-tesla-v100, node-pool: gpu-training}}`,
		"storage": `{volumes: [{name: training-data, persistentVolumeClaim: {claimName: ml-team-training-pvc}}],
  containers: [{name: trainer, volumeMounts: [{name: training-data, mountPath: /workspace/data}]}]}`,
		"tolerations": `{tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule},
  {key: training-workload, operator: Equal, value: high-priority, effect: NoSchedule}]}`,
	}
}

// patchedJob is a job with a patch for the pods of ReplicatedJob node.
func patchedJob(t *testing.T, pod string) *trainerv1alpha1.TrainJob {
	t.Helper()
	patch := `manager: trainer.kubeflow.org/kubeflow-sdk
trainingRuntimeSpec:
  template:
    metadata: {labels: {team: ml-platform}}
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {job-label: value}}
          spec:
            template:
              metadata: {annotations: {monitoring: enabled}}
              spec: ` + strings.ReplaceAll(pod, "\n", "\n                ") + "\n"
	job := &trainerv1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"}}
	job.Spec.RuntimePatches = make([]trainerv1alpha1.RuntimePatch, 1)
	if err := yaml.UnmarshalStrict([]byte(patch), &job.Spec.RuntimePatches[0]); err != nil {
		t.Fatal(err)
	}
	return job
}

// TestRuntimePatches_GuideAsWritten applies the guide's examples to all shipped runtimes in which the ReplicatedJob
// node trains.
func TestRuntimePatches_GuideAsWritten(t *testing.T) {
	files, err := filepath.Glob("../../manifests/chart/runtimes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	runtimes := 0
	for _, file := range files {
		var shipped trainerv1alpha1.ClusterTrainingRuntime
		readYAML(t, file, &shipped)
		if shipped.Spec.MLPolicy != nil && shipped.Spec.MLPolicy.MPI != nil {
			continue // its launcher trains
		}
		runtimes++
		for name, pod := range guide() {
			t.Run(shipped.Name+" "+name, func(t *testing.T) {
				job := patchedJob(t, pod)
				before := job.DeepCopy()
				planned, err := plan.New(
					job,
					plan.Runtime{Name: shipped.Name, Spec: shipped.Spec},
					plan.Options{Gang: true},
				)
				if err != nil {
					t.Fatal(err)
				}
				if !equality.Semantic.DeepEqual(job, before) {
					t.Error("the job was changed")
				}
				for _, replicated := range planned.JobSet.Spec.ReplicatedJobs {
					if replicated.Name == trainerv1alpha1.NodeName {
						carries(t, replicated.Template.Spec.Template.Spec, pod)
					}
				}
			})
		}
	}
	if runtimes < 8 {
		t.Errorf("%d runtimes, want all but those of MPI", runtimes)
	}
}

// carries checks that the trainer's container has the mounts of a patch, and that the patch added no container.
func carries(t *testing.T, pod corev1.PodSpec, text string) {
	t.Helper()
	var want corev1.PodSpec
	if err := yaml.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	mounts := map[string]string{}
	for _, container := range pod.Containers {
		if container.Name == "trainer" {
			t.Error("a container of the patch's name was added")
		}
		if container.Name == trainerv1alpha1.NodeName {
			for _, mount := range container.VolumeMounts {
				mounts[mount.MountPath] = mount.Name
			}
		}
	}
	for _, container := range want.Containers {
		for _, mount := range container.VolumeMounts {
			if mounts[mount.MountPath] != mount.Name {
				t.Errorf("mounts %v, want %s at %s", mounts, mount.Name, mount.MountPath)
			}
		}
	}
	if want.ServiceAccountName != "" && pod.ServiceAccountName != want.ServiceAccountName {
		t.Errorf("account %q, want %q", pod.ServiceAccountName, want.ServiceAccountName)
	}
}

// The other name has the restrictions of the first, and is another name only where the ReplicatedJob trains.
func TestRuntimePatches_TrainerIsNode(t *testing.T) {
	var torch, mpi trainerv1alpha1.ClusterTrainingRuntime
	readYAML(t, "../../manifests/chart/runtimes/torch-distributed.yaml", &torch)
	readYAML(t, "../../manifests/chart/runtimes/deepspeed-distributed.yaml", &mpi)
	for name, c := range map[string]struct {
		runtime trainerv1alpha1.ClusterTrainingRuntime
		pod     string
		want    string
	}{
		"env":          {torch, `{containers: [{name: trainer, env: [{name: A, value: b}]}]}`, "must not have envs"},
		"both names":   {torch, `{containers: [{name: trainer}, {name: node}]}`, "must not have container that doesn't exist"},
		"no trainer":   {mpi, `{containers: [{name: trainer}]}`, "must not have container that doesn't exist"},
		"another name": {torch, `{containers: [{name: training}]}`, "must not have container that doesn't exist"},
	} {
		t.Run(name, func(t *testing.T) {
			faults := plan.Validate(
				patchedJob(t, c.pod),
				plan.Runtime{Name: c.runtime.Name, Spec: c.runtime.Spec},
				plan.Options{},
			)
			if len(faults) != 1 || !strings.Contains(faults[0].Error(), c.want) {
				t.Errorf("faults %v, want one that says %q", faults, c.want)
			}
		})
	}
}
