package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// JobSet merges the entries of its template into the Jobs that it resumes: a value that changes arrives, and one that
// is taken away stays.
func TestDrops(t *testing.T) {
	spot := corev1.Toleration{Key: "market", Operator: corev1.TolerationOpEqual, Value: "spot"}
	gate := corev1.PodSchedulingGate{Name: "kueue.x-k8s.io/topology"}
	for name, c := range map[string]struct {
		edit func(pod *corev1.PodTemplateSpec)
		want bool
	}{
		"nothing":                  {func(*corev1.PodTemplateSpec) {}, false},
		"another value of a label": {func(p *corev1.PodTemplateSpec) { p.Labels["flavor"] = "reserved" }, false},
		"another value of a node label": {
			func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector["rack"] = "rack-2" }, false,
		},
		"one more toleration": {func(p *corev1.PodTemplateSpec) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "other"})
		}, false},
		"a label":         {func(p *corev1.PodTemplateSpec) { p.Labels = nil }, true},
		"an annotation":   {func(p *corev1.PodTemplateSpec) { p.Annotations = nil }, true},
		"a node selector": {func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = nil }, true},
		"a toleration's value": {func(p *corev1.PodTemplateSpec) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "market", Operator: corev1.TolerationOpEqual, Value: "reserved"}}
		}, true},
		"a gate": {func(p *corev1.PodTemplateSpec) { p.Spec.SchedulingGates = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			there := &jobsetv1alpha2.JobSet{}
			there.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{Name: "initializer"}, {Name: "node"}}
			pod := &there.Spec.ReplicatedJobs[1].Template.Spec.Template
			pod.Labels, pod.Annotations = map[string]string{"flavor": "spot"}, map[string]string{"workload": "a"}
			pod.Spec = corev1.PodSpec{
				NodeSelector: map[string]string{"rack": "rack-1"}, Tolerations: []corev1.Toleration{spot},
				SchedulingGates: []corev1.PodSchedulingGate{gate},
			}
			planned := there.DeepCopy()
			c.edit(&planned.Spec.ReplicatedJobs[1].Template.Spec.Template)
			if got := plan.Drops(planned, there); got != c.want {
				t.Errorf("Drops is %v, want %v", got, c.want)
			}
		})
	}
}
