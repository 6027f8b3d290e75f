package plan

import (
	"strings"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/topology"
)

// groupObjects returns the Workload of a job with groups, with one template for each, and their PodGroups. Where
// PodGroups are custom resources there is no Workload, and the groups carry the finalizer that Kubernetes gives its
// own.
func (d *draft) groupObjects(options Options) (*schedulingv1beta1.Workload, []*schedulingv1beta1.PodGroup) {
	workload := &schedulingv1beta1.Workload{
		TypeMeta:   metav1.TypeMeta{APIVersion: options.GangAPI.Version().String(), Kind: "Workload"},
		ObjectMeta: d.groupMeta(),
		Spec: schedulingv1beta1.WorkloadSpec{
			ControllerRef: &schedulingv1beta1.TypedLocalObjectReference{
				APIGroup: trainerv1alpha1.Group, Kind: trainerv1alpha1.TrainJobKind, Name: d.job.Name,
			},
		},
	}
	var groups []*schedulingv1beta1.PodGroup
	for _, g := range d.gangs {
		template := g.podGroupTemplate(options)
		workload.Spec.PodGroupTemplates = append(workload.Spec.PodGroupTemplates, template)
		meta := d.groupMeta()
		meta.Name = g.name
		meta.Labels = d.sweepLabels()
		meta.Annotations = overlay(g.annotations, timetable(d.job, options.ReportedEnd, options.Now))
		own := template.DeepCopy()
		groups = append(groups, &schedulingv1beta1.PodGroup{
			TypeMeta:   metav1.TypeMeta{APIVersion: options.GangAPI.Version().String(), Kind: podGroupKind},
			ObjectMeta: meta,
			Spec: schedulingv1beta1.PodGroupSpec{
				WorkloadRef: &schedulingv1beta1.WorkloadReference{
					WorkloadName: workload.Name, TemplateName: template.Name,
				},
				SchedulingPolicy:      own.SchedulingPolicy,
				SchedulingConstraints: own.SchedulingConstraints,
				ResourceClaims:        own.ResourceClaims,
				DisruptionMode:        own.DisruptionMode,
				PriorityClassName:     own.PriorityClassName,
			},
		})
	}
	if options.GangAPI != gangapi.Resources {
		return workload, groups
	}
	for _, group := range groups {
		group.Spec.WorkloadRef, group.Spec.ResourceClaims = nil, nil
		group.Finalizers = []string{gangapi.Finalizer}
	}
	return nil, groups
}

// podGroupTemplate returns the common part of the Workload and the PodGroup of a group.
func (g *gang) podGroupTemplate(options Options) schedulingv1beta1.PodGroupTemplate {
	rules := g.rules.DeepCopy()
	template := schedulingv1beta1.PodGroupTemplate{
		Name:              g.template,
		ResourceClaims:    rules.ResourceClaims,
		DisruptionMode:    rules.DisruptionMode,
		PriorityClassName: g.priorityClass,
	}
	if isBasic(g.rules) {
		template.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
	} else {
		template.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: g.count}
		switch {
		case template.DisruptionMode != nil:
		case g.annotations[topology.AnnotationMinNodes] != "":
			template.DisruptionMode = &schedulingv1beta1.DisruptionMode{
				Single: &schedulingv1beta1.SingleDisruptionMode{},
			}
		default: // under any preemption, the ranks cannot continue without one of them
			template.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
		}
	}
	if key := g.nodeLabel(); key != "" && options.KeepsConstraints {
		template.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}},
		}
	}
	return template
}

// nodeLabel is the required topology where it is the key of a node label: the native field does not know the names of
// levels. A runtime's constraint is always one.
func (g *gang) nodeLabel() string {
	required := g.annotations[topology.AnnotationRequiredTopology]
	if strings.Contains(required, "/") || required == constraintOf(g.rules) {
		return required
	}
	return ""
}
