package direct

import (
	"errors"
	"fmt"
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
		for _, held := range r.Holds {
			if held.Node < 0 || held.Node >= nodes {
				return fail("%s runs on node %d of %d", r.Name, held.Node, nodes)
			}
		}
	}
	for _, j := range scene.Jobs {
		if j.Runs < 0 || j.Promises < 0 || j.Saves < 0 || j.Accelerators < 0 {
			return fail("job %s: what it runs, promises, saves and holds cannot be negative", j.Name)
		}
	}
	return nil
}
