package gangplacement

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// heardWithin is the time within which the scheduler hears why a pod ended after it has heard that it is gone: the two
// come by different watches.
const heardWithin = time.Minute

// sentPods are the pods that this scheduler has sent to nodes. Whoever may create pods may also name their node, and
// such a pod passes no filter: if the refusals of these counted, a tenant could bar nodes to the gangs of all others.
//
// It is not safe for concurrent use.
type sentPods struct {
	known map[types.UID]bool
	// gone are those that are to be forgotten, the first one first.
	gone []gonePod
}

// gonePod is a pod that has ended or was deleted.
type gonePod struct {
	uid types.UID
	at  time.Time
}

func newSentPods() sentPods { return sentPods{known: make(map[types.UID]bool)} }

// add adds a pod that is sent to a node.
func (s *sentPods) add(pod types.UID) { s.known[pod] = true }

// has reports whether a pod was sent to its node.
func (s *sentPods) has(pod types.UID) bool { return s.known[pod] }

// remove forgets a pod soon after now, and those that went long before.
func (s *sentPods) remove(pod types.UID, now time.Time) {
	if s.known[pod] {
		s.gone = append(s.gone, gonePod{pod, now})
	}
	for len(s.gone) > 0 && now.Sub(s.gone[0].at) > heardWithin {
		delete(s.known, s.gone[0].uid)
		s.gone = s.gone[1:]
	}
}
