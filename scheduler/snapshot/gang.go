package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/topology"
)

// Where a pod's rank is written, by the controllers that make pods.
const (
	labelReplicatedJob   = "jobset.sigs.k8s.io/replicatedjob-name"
	labelJobIndex        = "jobset.sigs.k8s.io/job-index"
	labelCompletionIndex = "batch.kubernetes.io/job-completion-index"
)

// mostKinds bounds the kinds of a gang's waiting members: each is compared with every node in every evaluation of the
// gang, while all other gangs wait. Members with a node each, as Kueue's topology-aware scheduling assigns them, are of
// a kind each.
const mostKinds = 512

var errKinds = fmt.Errorf(
	"its members are of more than %d kinds, which differ in requests, node selector, affinity or tolerations; "+
		"make them alike, or several gangs of them",
	mostKinds,
)

// Gang is the group's pods as the decision core sees them: members in rank order, equal ones of one shape; those that
// have nodes are placed, and late ones have yet to arrive. A node in refused is barred to all members by the rule given
// there. The error says which annotation of the group cannot be read.
func (v View) Gang(
	group *schedulingv1beta1.PodGroup,
	waiting, running []*corev1.Pod,
	refused map[string]string,
) (topology.Gang, error) {
	gang := topology.Gang{Name: group.Namespace + "/" + group.Name}
	if err := v.wishes(group, &gang); err != nil {
		return gang, err
	}
	late, err := Late(group, waiting, running)
	if err != nil {
		return gang, err
	}
	lineup := v.lineups.of(group)
	shapes := make(map[int]int) // by kind
	var uncounted []string
	waitingKinds := 0
	for _, m := range lineup.line(waiting, running, late) {
		member := topology.Member{Name: m.pod.Name, Late: m.as == comes}
		if m.as == runs {
			if m.at(v.Tree); m.node < 0 {
				continue // its node is deleted, and the member with it
			}
			member.Placed, member.Node = true, m.node
		}
		shape, known := shapes[lineup.kind(m)]
		if !known {
			if m.as != runs {
				waitingKinds++
			}
			if waitingKinds > mostKinds {
				return gang, errKinds
			}
			shape = len(gang.Shapes)
			shapes[lineup.kind(m)] = shape
			asked, names := v.shape(m)
			gang.Shapes, uncounted = append(gang.Shapes, asked), append(uncounted, names...)
			gang.TPU = cmp.Or(gang.TPU, tpuOf(m.pod))
		}
		member.Shape = shape
		gang.Members = append(gang.Members, member)
	}
	gang.Resources = v.named(uncounted)
	if len(refused) > 0 {
		gang = v.Without(gang, refused)
	}
	return gang, nil
}

// tpuOf returns the shape of the TPU slice that a pod asks for by GKE's labels, empty for none.
func tpuOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Annotations[topology.AnnotationTPUTopology], pod.Spec.NodeSelector[topology.LabelTPUTopology])
}

// shape returns the demand of a member and the nodes that are barred for it, and the requested resources that no node
// offers: a member that runs has what it requests.
func (v View) shape(m *ranked) (topology.Shape, []string) {
	pod := m.pod
	if m.as == runs {
		pod = unbound(pod)
	}
	s := topology.Shape{Demand: demandOf(pod, v.resources), Barred: v.barred(pod)}
	uncounted := v.uncounted(asks(pod))
	if at := slices.Index(v.resources, Unoffered); at >= 0 && len(uncounted) > 0 && m.as != runs {
		s.Demand[at] = 1
	}
	return s, uncounted
}

// unbound returns the pod as it was before it had a node: with its requests, not its node.
func unbound(pod *corev1.Pod) *corev1.Pod {
	before := *pod
	before.Spec.NodeName = ""
	return &before
}

// kind is a pod that stands for all that ask for the same and may use the same nodes.
type kind struct {
	pod  *corev1.Pod
	asks corev1.ResourceList
	// wants is the only node that it may use; "" for any, as all members that run did before they had theirs.
	wants string
}

// equals compares the fields that usually exist first: a gang of a thousand members is compared a thousand times.
func (k kind) equals(other kind) bool {
	a, b := &k.pod.Spec, &other.pod.Spec
	return k.wants == other.wants && maps.EqualFunc(k.asks, other.asks, same) &&
		maps.Equal(a.NodeSelector, b.NodeSelector) &&
		slices.EqualFunc(a.Tolerations, b.Tolerations, sameToleration) &&
		sameAffinity(requiredAffinity(k.pod), requiredAffinity(other.pod))
}

func sameToleration(a, b corev1.Toleration) bool {
	seconds := ptr.Equal(a.TolerationSeconds, b.TolerationSeconds)
	a.TolerationSeconds, b.TolerationSeconds = nil, nil
	return seconds && a == b
}

func sameAffinity(a, b *corev1.NodeSelector) bool {
	return a == b || apiequality.Semantic.DeepEqual(a, b)
}

func same(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }

// Without is the gang as it may go anywhere but to these nodes: each is barred to all members by the rule given there.
func (v View) Without(gang topology.Gang, nodes map[string]string) topology.Gang {
	gang.Shapes = slices.Clone(gang.Shapes)
	for i := range gang.Shapes {
		gang.Shapes[i].Barred = slices.Clone(gang.Shapes[i].Barred)
		v.bar(nodes, &gang.Shapes[i])
	}
	return gang
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

// InRankOrder sorts pods by rank: replicated job, job index, completion index or rank by annotation, name. Indices
// compare as numbers.
func InRankOrder(pods []*corev1.Pod) []*corev1.Pod {
	ranks := make([]rank, len(pods))
	for i, pod := range pods {
		ranks[i] = rankOf(pod)
	}
	slices.SortFunc(ranks, rank.compare)
	out := make([]*corev1.Pod, len(ranks))
	for i := range ranks {
		out[i] = ranks[i].pod
	}
	return out
}

// rank holds the keys by which a pod is ordered.
type rank struct {
	replicatedJob   string
	job, completion int
	pod             *corev1.Pod
}

func rankOf(pod *corev1.Pod) rank {
	index := completionIndex(pod)
	if text, marked := pod.Annotations[gangapi.AnnotationRank]; marked {
		index = number(text)
	}
	return rank{pod.Labels[labelReplicatedJob], number(pod.Labels[labelJobIndex]), index, pod}
}

func (r rank) compare(other rank) int {
	return cmp.Or(
		cmp.Compare(r.replicatedJob, other.replicatedJob), cmp.Compare(r.job, other.job),
		cmp.Compare(r.completion, other.completion), cmp.Compare(r.pod.Name, other.pod.Name),
	)
}

// CompletionIndex returns the index that a Job gave to the pod, -1 for a pod without one.
func CompletionIndex(pod *corev1.Pod) int {
	if index := completionIndex(pod); index != math.MaxInt {
		return index
	}
	return -1
}

// completionIndex is in a label of newer Jobs and in an annotation of all.
func completionIndex(pod *corev1.Pod) int {
	return number(cmp.Or(pod.Labels[labelCompletionIndex], pod.Annotations[labelCompletionIndex]))
}

// number reads an index; pods without one follow those with one.
func number(s string) int {
	if s == "" {
		return math.MaxInt
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return math.MaxInt
	}
	return n
}
