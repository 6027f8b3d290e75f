package gangpreemption

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/unplaced"
)

// Leaving is who would leave for a gang.
type Leaving struct {
	// Names are those of the victims; nil where nobody's departure helps.
	Names []string
	// Lost is the work that leaves with them, in accelerator-seconds.
	Lost int64
}

// Leave chooses who would leave for the gang.
func Leave(
	asked unplaced.Gang, groups fwk.PodGroupLister, limits []*policyv1.PodDisruptionBudget, now time.Time,
) (Leaving, error) {
	found, _, err := choose(asked, gather(asked, groups), limits, now)
	out := Leaving{Lost: found.lost}
	for _, u := range found.victims {
		out.Names = append(out.Names, u.Name)
	}
	return out, err
}
