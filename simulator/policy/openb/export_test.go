package openb

import "github.com/lockstep-project/lockstep/simulator/inputs/trace"

// NodeOrder are the names of the nodes in the order by which ties are broken.
func NodeOrder(s Scene) []string {
	var names []string
	for i := range s.nodes {
		names = append(names, s.nodes[i].Name)
	}
	return names
}

// Score returns a policy's score of a node for a pod, where pods like those in has were placed on the node, and pods
// like those in the list are expected.
func Score(policy string, n Node, has []trace.OpenbPod, pod trace.OpenbPod, list []trace.OpenbPod) int {
	m := models{"G2"}
	f := newFragments(popularOf(list), m)
	n.fragmented = f.of(n.model, n.CPU, n.GPUs)
	for _, left := range n.GPUs {
		n.Free += left
		if left == trace.GPU {
			n.Idle++
		}
	}
	shapes, _ := shapesOf(append(has, pod), m)
	for i := range has {
		n.classes |= shapes[i].class()
	}
	p, err := newPolicy(policy, f, nil)
	if err != nil {
		return noRoom
	}
	return p.Score(&n, &shapes[len(shapes)-1])
}
