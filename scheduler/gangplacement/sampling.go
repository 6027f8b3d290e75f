package gangplacement

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
)

// all makes the search for feasible nodes complete, adaptive makes it end when kube-scheduler's own part of the nodes
// is found: from 50 % of 100 nodes to 5 %, at least 100.
const (
	all      int32 = 100
	adaptive int32 = 0
)

// percentage is the source of the number of nodes that the loop has to find for the pod that it schedules. The
// framework offers it to plugins, though its interface does not say so: the profile's own value, which only the loop
// reads.
type percentage interface{ PercentageOfNodesToScore() *int32 }

// nodeSampler sets the part of the nodes that kube-scheduler searches for a pod. It follows which nodes have
// accelerators, because a search that ends early could miss the nodes that Score prefers.
//
// The scheduling loop sets the part. Event handlers change the kinds of nodes, which the loop reads. The goroutines
// that score nodes read the accelerators.
type nodeSampler struct {
	// profile gives the percentage of nodes to score, in percent; nil if the framework does not offer it.
	profile percentage
	// accelerators are the resources that count as accelerators. They never change.
	accelerators []corev1.ResourceName

	// mu guards with and without: a node that changes its kind is in one of them at any time.
	mu sync.Mutex
	// with holds the names of the nodes that have accelerators.
	with sets.Set[string]
	// without holds the names of the nodes that have no accelerators.
	without sets.Set[string]
}

func newNodeSampler(handle fwk.Handle, accelerators []corev1.ResourceName) *nodeSampler {
	profile, _ := handle.(percentage)
	return &nodeSampler{
		profile: profile, accelerators: accelerators, with: sets.New[string](), without: sets.New[string](),
	}
}

// searchAll has all nodes searched for the pod of this cycle: members of planned gangs need that, because the choice of
// a looser placement must not depend on where a search begins.
func (s *nodeSampler) searchAll() { s.search(all) }

// searchSome has the search for a pod without a plan end early, as in kube-scheduler, unless it could miss the nodes
// that Score prefers: those without accelerators, in a fleet that has both kinds.
func (s *nodeSampler) searchSome(pod *corev1.Pod) {
	if s.avoids(pod) {
		s.search(all)
		return
	}
	s.search(adaptive)
}

// search sets the part of the nodes that is searched from now on, in percent.
func (s *nodeSampler) search(part int32) {
	if s.profile == nil {
		return
	}
	if nodes := s.profile.PercentageOfNodesToScore(); nodes != nil { // else the profile does not say, and nothing of it is to be changed
		*nodes = part
	}
}

// avoids reports whether Score steers the pod away from some nodes: it needs no accelerators, and the fleet has nodes
// with and without.
func (s *nodeSampler) avoids(pod *corev1.Pod) bool {
	return s.mixed() && !s.needsAccelerators(pod)
}

func (s *nodeSampler) needsAccelerators(pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range s.accelerators {
		if q := requests[name]; !q.IsZero() {
			return true
		}
	}
	return false
}

// mixed reports whether the fleet has nodes with and without accelerators.
func (s *nodeSampler) mixed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.with.Len() > 0 && s.without.Len() > 0
}

// offersAccelerators reports whether a node of the snapshot has accelerators.
func (s *nodeSampler) offersAccelerators(node fwk.NodeInfo) bool {
	offered := node.GetAllocatable().GetScalarResources()
	for _, name := range s.accelerators {
		if offered[name] > 0 {
			return true
		}
	}
	return false
}

// nodeChanged notes the kind of a node that was added or updated.
func (s *nodeSampler) nodeChanged(node *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(node.Name)
	for _, name := range s.accelerators {
		if q, ok := node.Status.Allocatable[name]; ok && !q.IsZero() {
			s.with.Insert(node.Name)
			return
		}
	}
	s.without.Insert(node.Name)
}

// nodeDeleted forgets the kind of a deleted node.
func (s *nodeSampler) nodeDeleted(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(node)
}

// remove takes the node out of both kinds. Callers hold mu.
func (s *nodeSampler) remove(node string) {
	s.with.Delete(node)
	s.without.Delete(node)
}
