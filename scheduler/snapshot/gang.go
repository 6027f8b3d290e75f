package snapshot

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/lockstep-project/lockstep/topology"
)

// Where a pod's rank is written, by the controllers that make pods.
const (
	labelReplicatedJob   = "jobset.sigs.k8s.io/replicatedjob-name"
	labelJobIndex        = "jobset.sigs.k8s.io/job-index"
	labelCompletionIndex = "batch.kubernetes.io/job-completion-index"
)

// annotationKueueRequired is Kueue's spelling of a required topology level.
const annotationKueueRequired = "kueue.x-k8s.io/podset-required-topology"

// Required is the level inside one domain of which the PodGroup must be, "" for none. The annotation decides: an API
// server whose gate is off drops the native field.
func Required(group *schedulingv1beta1.PodGroup) string {
	if level := cmp.Or(group.Annotations[topology.AnnotationRequiredTopology],
		group.Annotations[annotationKueueRequired]); level != "" {
		return level
	}
	if c := group.Spec.SchedulingConstraints; c != nil && len(c.Topology) > 0 {
		return c.Topology[0].Key
	}
	return ""
}

// Unserved is the first hard wish on the PodGroup that this scheduler does not serve, "" if there is none. A gang waits
// rather than start against its owner's wish.
func Unserved(group *schedulingv1beta1.PodGroup) string {
	for _, key := range []string{
		topology.AnnotationSegmentSize, topology.AnnotationSpreadMax, topology.AnnotationSpares, topology.AnnotationMaxPerNode,
	} {
		if group.Annotations[key] != "" {
			return key
		}
	}
	return ""
}

// Gang is the group's waiting pods as the decision core sees them: members in rank order, equal ones of one shape.
// A node in refused is barred to all members by the rule given there.
func (v View) Gang(
	group *schedulingv1beta1.PodGroup,
	waiting, running []*corev1.Pod,
	refused map[string]string,
) topology.Gang {
	gang := topology.Gang{Name: group.Namespace + "/" + group.Name, Required: Required(group)}
	var examples []*corev1.Pod
	for _, pod := range InRankOrder(waiting) {
		shape := slices.IndexFunc(examples, func(example *corev1.Pod) bool { return alike(example, pod) })
		if shape < 0 {
			shape = len(examples)
			examples = append(examples, pod)
			gang.Shapes = append(
				gang.Shapes,
				topology.Shape{Demand: demand(requests(pod), v.resources), Barred: v.barred(pod)},
			)
		}
		gang.Members = append(gang.Members, topology.Member{Name: pod.Name, Shape: shape})
	}
	for i := range gang.Shapes {
		v.keepWith(running, gang.Required, &gang.Shapes[i])
		v.bar(refused, &gang.Shapes[i])
	}
	return gang
}

// alike reports whether two pods ask for the same and may use the same nodes.
func alike(a, b *corev1.Pod) bool {
	return a.Spec.NodeName == b.Spec.NodeName &&
		apiequality.Semantic.DeepEqual(requests(a), requests(b)) &&
		apiequality.Semantic.DeepEqual(a.Spec.NodeSelector, b.Spec.NodeSelector) &&
		apiequality.Semantic.DeepEqual(requiredAffinity(a), requiredAffinity(b)) &&
		apiequality.Semantic.DeepEqual(a.Spec.Tolerations, b.Spec.Tolerations)
}

// keepWith bars the nodes outside the required domain of the members that already have nodes.
func (v View) keepWith(running []*corev1.Pod, required string, shape *topology.Shape) {
	level, ok := v.Tree.Level(required)
	if len(running) == 0 || required == "" || !ok {
		return
	}
	home := make(map[string]bool)
	for _, pod := range running {
		if i, ok := v.Tree.Index(pod.Spec.NodeName); ok {
			if d, ok := v.Tree.Domain(i, level); ok {
				home[d.String()] = true
			}
		}
	}
	for i := range v.Infos {
		if d, ok := v.Tree.Domain(i, level); !ok || !home[d.String()] {
			barNode(shape, i, len(v.Infos), ruleOutside)
		}
	}
}

func (v View) bar(refused map[string]string, shape *topology.Shape) {
	for name, rule := range refused {
		if i, ok := v.Tree.Index(name); ok {
			barNode(shape, i, len(v.Infos), rule)
		}
	}
}

// barNode adds a rule; the first rule that barred a node stays.
func barNode(shape *topology.Shape, node, nodes int, rule string) {
	if shape.Barred == nil {
		shape.Barred = make([]string, nodes)
	}
	if shape.Barred[node] == "" {
		shape.Barred[node] = rule
	}
}

// InRankOrder sorts pods by rank: replicated job, job index, completion index, name. Indices compare as numbers.
func InRankOrder(pods []*corev1.Pod) []*corev1.Pod {
	out := slices.Clone(pods)
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(a.Labels[labelReplicatedJob], b.Labels[labelReplicatedJob]),
			cmp.Compare(number(a.Labels[labelJobIndex]), number(b.Labels[labelJobIndex])),
			cmp.Compare(completionIndex(a), completionIndex(b)),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return out
}

// completionIndex is in a label of newer Jobs and in an annotation of all.
func completionIndex(pod *corev1.Pod) int {
	return number(cmp.Or(pod.Labels[labelCompletionIndex], pod.Annotations[labelCompletionIndex]))
}

// number reads an index; pods without one come after those with one.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return math.MaxInt
	}
	return n
}
