package direct

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// ErrScene is the cause of all errors about scenes.
var ErrScene = errors.New("the scene cannot be played")

func check(scene Scene) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrScene, fmt.Sprintf(format, args...))
	}
	nodes := scene.Ledger.Len()
	if nodes == 0 || len(scene.Ledger.Free) != nodes {
		return fail("the fleet has %d nodes, and free capacity of %d", nodes, len(scene.Ledger.Free))
	}
	for _, r := range scene.Running {
		off := func(h topology.Held) bool { return h.Node < 0 || h.Node >= nodes }
		if at := slices.IndexFunc(r.Holds, off); at >= 0 {
			return fail("%s runs on node %d of %d", r.Name, r.Holds[at].Node, nodes)
		}
	}
	if scene.Closed != nil && len(scene.Closed) != nodes {
		return fail("the fleet has %d nodes, and Closed has %d", nodes, len(scene.Closed))
	}
	for i, event := range scene.Events {
		if wrong := wrongEvent(scene, i); wrong != "" {
			return fail("%s at %d: %s", event.Kind, event.At, wrong)
		}
	}
	names := make(map[string]struct{}, len(scene.Jobs))
	for i := range scene.Jobs {
		if wrong := wrongJob(scene, i); wrong != "" {
			return fail("job %s: %s", scene.Jobs[i].Name, wrong)
		}
		names[scene.Jobs[i].Name] = struct{}{}
	}
	if len(names) != len(scene.Jobs) {
		return fail("%d jobs have %d names; give each its own", len(scene.Jobs), len(names))
	}
	return nil
}

// wrongJob returns the fault of a job, "" for none.
func wrongJob(scene Scene, i int) string {
	j := &scene.Jobs[i]
	beyond := func(node int) bool { return node < 0 || node >= scene.Ledger.Len() }
	switch {
	case j.Runs < 0 || j.Promises < 0 || j.Saves < 0 || j.Grace < 0 || j.Accelerators < 0:
		return "Runs, Promises, Saves, Grace and Accelerators must not be negative"
	case j.Min < 0 || j.Min > len(j.Gang.Members):
		return fmt.Sprintf("Min is %d with %d members", j.Min, len(j.Gang.Members))
	case j.Bound != nil && (len(j.Bound) != len(j.Gang.Members) || slices.ContainsFunc(j.Bound, beyond)):
		return fmt.Sprintf("its %d members are bound to nodes %v", len(j.Gang.Members), j.Bound)
	}
	return ""
}

// wrongEvent returns the fault of an event of nodes, "" for none.
func wrongEvent(scene Scene, i int) string {
	event := scene.Events[i]
	switch event.Kind {
	case NodesFailed, NodesDrained, NodesCordoned, NodesReturned:
	case Suspended, Resumed:
		if event.Job < 0 || event.Job >= len(scene.Jobs) {
			return fmt.Sprintf("there is no job with the index %d", event.Job)
		}
	case Extended:
		if event.Running < 0 || event.Running >= len(scene.Running) {
			return fmt.Sprintf("nothing runs that has the index %d", event.Running)
		}
	default:
		return "no event of nodes"
	}
	if i > 0 && event.At < scene.Events[i-1].At {
		return "the event before it is later"
	}
	for _, node := range event.Nodes {
		if node < 0 || node >= scene.Ledger.Len() {
			return fmt.Sprintf("there is no node %d", node)
		}
	}
	return ""
}
