package nodehealth

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// trial is the record of a gang whose ranks failed.
type trial struct {
	namespace string
	// node is the one on which a rank failed first last time, at that instant; failures is the number of failures in a
	// row, and ran the longest run before.
	node     string
	at       time.Time
	failures int
	ran      time.Duration
	// wanders is set once it failed on another node too.
	wanders bool
	// since is the time at which the gang started without the node; zero before that.
	since time.Time
}

// The limits of trials.
const (
	// follow is the time after a failure in which the failures of other ranks of the gang are its consequences.
	follow = time.Minute
	// enoughFailures are those on one node after which a gang starts without it.
	enoughFailures = 2
	// shortest is the least time that a gang has to run without the node.
	shortest = 10 * time.Minute
)

// Failed notes that a rank of a gang failed on a node after it had run for some time. The failures of a minute are one.
func (l *Ledger) Failed(node, namespace string, gang types.UID, ran time.Duration, now time.Time) {
	if l.limits.HalfLife == 0 {
		return
	}
	t := l.trials[gang]
	if t == nil {
		t = &trial{namespace: namespace, node: node}
		l.trials[gang] = t
	} else if now.Sub(t.at) < follow {
		return
	}
	if t.node != node {
		*t = trial{namespace: namespace, node: node, wanders: true}
	}
	t.at, t.failures, t.ran, t.since = now, t.failures+1, max(t.ran, ran), time.Time{}
}

// Avoids returns the node that the gang is to start without, "" for none.
func (l *Ledger) Avoids(gang types.UID) string {
	if t := l.trials[gang]; t != nil && t.failures >= enoughFailures {
		return t.node
	}
	return ""
}

// Started notes that a gang starts without the node that it avoids.
func (l *Ledger) Started(gang types.UID, now time.Time) {
	if t := l.trials[gang]; t != nil {
		t.since = now
	}
}

// Forget forgets a deleted gang. The results of its trial stay.
func (l *Ledger) Forget(gang types.UID, now time.Time) {
	l.settle(now)
	delete(l.trials, gang)
}

// settle ends the trials that have lasted long enough.
func (l *Ledger) settle(now time.Time) {
	maps.DeleteFunc(l.trials, func(_ types.UID, t *trial) bool {
		if t.since.IsZero() || t.wanders || now.Sub(t.since) < max(t.ran, shortest) {
			return false
		}
		for range enoughFailures {
			l.add(t.node, strike{now, t.namespace})
		}
		return true
	})
}
