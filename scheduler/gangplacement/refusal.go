package gangplacement

import (
	"hash/fnv"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// ruleRefused is why a node is barred that the plan chose and the framework's filters rejected.
const ruleRefused = "refused by the scheduler's filters"

// refusals is what is known about one gang's failed plans.
type refusals struct {
	gang types.UID
	// nodes maps a refusing node to what it was like then.
	nodes map[string]uint64
	// last are the pins of the last plan, not yet looked at.
	last map[string]*pin
}

// look sums up what the filters see of a node and its pods. A generation would not do: trying a gang on a node and
// taking it off again changes that.
func look(info fwk.NodeInfo) uint64 {
	sum := hash(info.Node().ResourceVersion)
	for _, pod := range info.GetPods() {
		sum += hash(string(pod.GetPod().UID))
	}
	return sum
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return h.Sum64()
}

// takeRefusals learns from the gang's last plan and returns the nodes to bar: those that refused their pin, or whose
// kubelets refused a pod, and are as they were then.
func (p *GangPlacement) takeRefusals(group *schedulingv1beta1.PodGroup, nodes []fwk.NodeInfo) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.refused[group.Namespace+"/"+group.Name]
	if known == nil || known.gang != group.UID {
		return p.barSuspects(nil, nodes)
	}
	for _, pin := range known.last {
		if pin.tried.Load() && !pin.held.Load() {
			known.nodes[pin.node] = pin.look
			metrics.Refusals.Inc()
		}
	}
	known.last = nil
	if len(known.nodes) == 0 {
		return p.barSuspects(nil, nodes)
	}
	out := make(map[string]string, len(known.nodes))
	for _, info := range nodes {
		name := info.Node().Name
		if was, ok := known.nodes[name]; !ok || was != look(info) {
			continue
		}
		out[name] = ruleRefused
	}
	for name := range known.nodes {
		if out[name] == "" {
			delete(known.nodes, name)
		}
	}
	return p.barSuspects(out, nodes)
}

// remember keeps the plan's pins until the gang's next attempt.
func (p *GangPlacement) remember(group *schedulingv1beta1.PodGroup, plan *plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := group.Namespace + "/" + group.Name
	known := p.refused[key]
	if known == nil || known.gang != group.UID {
		known = &refusals{gang: group.UID, nodes: make(map[string]uint64)}
		p.refused[key] = known
	}
	known.last = plan.pins
}

// forgetGone forgets a deleted group, but not one of the same name that came after it.
func (p *GangPlacement) forgetGone(obj any) {
	group, ok := snapshot.Deleted(obj)
	if !ok {
		return
	}
	p.explain.Forget(group.UID)
	name := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	key := name.String()
	p.slots.Release(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.coming, name)
	if known := p.refused[key]; known != nil && known.gang == group.UID {
		delete(p.refused, key)
	}
}

// forget drops what is known about a gang that is placed or has no other node left.
func (p *GangPlacement) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refused, key)
}
