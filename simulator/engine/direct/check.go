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
		return fail("%d nodes, and what is free on %d", nodes, len(scene.Ledger.Free))
	}
	if scene.RunningEnds != nil && len(scene.RunningEnds) != len(scene.Running) {
		return fail("%d gangs run, and the ends of %d are given", len(scene.Running), len(scene.RunningEnds))
	}
	for _, r := range scene.Running {
		off := func(h topology.Held) bool { return h.Node < 0 || h.Node >= nodes }
		if at := slices.IndexFunc(r.Holds, off); at >= 0 {
			return fail("%s runs on node %d of %d", r.Name, r.Holds[at].Node, nodes)
		}
	}
	if scene.Closed != nil && len(scene.Closed) != nodes {
		return fail("%d nodes, and %d of which it is said whether they are closed", nodes, len(scene.Closed))
	}
	for i, event := range scene.Events {
		if wrong := wrongEvent(scene, i); wrong != "" {
			return fail("%s at %d: %s", event.Kind, event.At, wrong)
		}
	}
	for _, j := range scene.Jobs {
		if j.Runs < 0 || j.Promises < 0 || j.Saves < 0 || j.Accelerators < 0 {
			return fail("job %s: what it runs, promises, saves and holds cannot be negative", j.Name)
		}
	}
	return nil
}

// wrongEvent says what is wrong with an event of nodes, "" for nothing.
func wrongEvent(scene Scene, i int) string {
	event := scene.Events[i]
	if event.Kind != NodesFailed && event.Kind != NodesDrained && event.Kind != NodesReturned {
		return "it is nothing that happens to nodes"
	}
	if i > 0 && event.At < scene.Events[i-1].At {
		return "it comes after a later one"
	}
	for _, node := range event.Nodes {
		if node < 0 || node >= scene.Ledger.Len() {
			return fmt.Sprintf("there is no node %d", node)
		}
	}
	return ""
}
