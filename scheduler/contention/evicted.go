package contention

import (
	"cmp"
	"maps"
	"slices"
)

// Evictions are the remembered evictions of a unit: at least those of the last day, unless more than mostEvicted units
// were evicted since. Older ones are forgotten when the unit is evicted again.
//
// An eviction is a Preempted action that names the unit, or a unit of its elastic gang, as a victim: by preemption, or
// because it passed a lease whose owner starts (basic rule 3b). Terms.MaxPerDay limits the evictions within a day.
// DECISIONS.md lists the departures that do not count as evictions.
type Evictions struct {
	// At holds their instants in seconds, ascending.
	At []int64
	// Accelerators is the most that the unit held at one of them: a larger unit of the same name is another one. A gang
	// that may start with fewer members asks for more than that when it waits again.
	Accelerators int64
}

// evictions holds the evictions of all units, by unit or elastic gang.
type evictions map[ID]Evictions

// mostEvicted bounds the number of units that are remembered: the state has to fit into a ConfigMap.
const mostEvicted = 2048

// reached reports whether a unit was evicted as often within the last day as may be.
func (e evictions) reached(most int, u *Unit, now int64) bool {
	of := e[u.gang()]
	return most > 0 && max(u.Accelerators, u.Stops) <= of.Accelerators && len(sinceYesterday(of.At, now)) >= most
}

// sinceYesterday returns the instants that are less than a day ago.
func sinceYesterday(at []int64, now int64) []int64 {
	first, _ := slices.BinarySearch(at, now-day+1)
	return at[first:]
}

// note records the eviction of units; units of one gang count as that gang. It forgets evictions older than a day and,
// of too many units, those whose last eviction is longest ago. It returns the recorded units and gangs.
func (e evictions) note(units []*Unit, now int64) evicted {
	noted, seen := evicted{at: now}, make(map[ID]bool, len(units))
	for _, u := range units {
		id := u.gang()
		of := e[id]
		if !seen[id] {
			of.At = append(slices.Clone(sinceYesterday(of.At, now)), now)
			noted.ids, seen[id] = append(noted.ids, id), true
		}
		of.Accelerators = max(of.Accelerators, u.Accelerators, u.Stops)
		e[id] = of
	}
	if len(e) <= mostEvicted {
		return noted
	}
	ids := slices.SortedFunc(maps.Keys(e), func(a, b ID) int {
		return cmp.Or(cmp.Compare(e[b].At[len(e[b].At)-1], e[a].At[len(e[a].At)-1]), cmp.Compare(a, b))
	})
	for i, id := range ids {
		if i >= mostEvicted/2 || len(sinceYesterday(e[id].At, now)) == 0 {
			delete(e, id)
		}
	}
	return noted
}

// evicted lists the units and gangs that one decision evicts, and its instant.
type evicted struct {
	ids []ID
	at  int64
}

// takeBack forgets a decision that was not carried out.
func (e evictions) takeBack(these evicted) {
	for _, id := range these.ids {
		of := e[id]
		if i := slices.Index(of.At, these.at); i >= 0 {
			of.At = slices.Delete(slices.Clone(of.At), i, i+1)
		}
		if e[id] = of; len(of.At) == 0 {
			delete(e, id)
		}
	}
}

// RefusePreemption ends the preemption lease of an owner whose victims stay, since the driver's filters refused the
// place. The evictions do not count: a unit that was chosen so may be evicted for another entity on the same day.
func (m *Machine) RefusePreemption(owner ID, now int64) []Action {
	if l := m.Lease(owner); l != nil {
		m.evictions.takeBack(l.evicted)
	}
	return m.Revoke(owner, WhyVictims, now)
}
