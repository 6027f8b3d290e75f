package contentiontest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

func join(ids []contention.ID) string {
	var words []string
	for _, id := range ids {
		words = append(words, string(id))
	}
	return strings.Join(words, ", ")
}

// ranges prints nodes by number, neighbors joined: n1-n4 n7.
func ranges(nodes []int) string {
	nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	var words []string
	for i := 0; i < len(nodes); {
		end := i
		for end+1 < len(nodes) && nodes[end+1] == nodes[end]+1 {
			end++
		}
		word := fmt.Sprintf("n%d", nodes[i]+1)
		if end > i {
			word += fmt.Sprintf("-n%d", nodes[end]+1)
		}
		words, i = append(words, word), end+1
	}
	return strings.Join(words, " ")
}

// describe prints a lease.
func describe(l *contention.Lease) string {
	state := "closed"
	if l.Open {
		state = "open"
	}
	switch l.Reason {
	case contention.Head, contention.Preemption:
		certainty := "firm"
		if !l.Firm {
			certainty = "guess"
		}
		return fmt.Sprintf(
			"%s leases %s, %s from %s (%s)",
			l.Owner,
			ranges(l.Nodes),
			state,
			Clock(l.Instant),
			certainty,
		)
	default:
		return fmt.Sprintf("%s leases %s as %s until %s", l.Owner, ranges(l.Nodes), l.Reason, Clock(l.Expiry))
	}
}

// Picture draws the fleet: for each clique a line with a letter per node, and one below with the leases. A dot is a
// free node, a letter a node full of one job, a digit the number of GPUs of a node that are in use; a capital is a
// closed lease, a small letter an open one.
func (p *Player) Picture() string {
	var out strings.Builder
	for c := range p.scene.Cliques {
		var used, leased strings.Builder
		for i := range p.scene.Nodes {
			node := c*p.scene.Nodes + i
			used.WriteByte(p.usage(node))
			leased.WriteByte(p.leaseMark(node))
		}
		fmt.Fprintf(&out, "c%d  %s\n", c+1, used.String())
		if marks := strings.TrimRight(leased.String(), " "); marks != "" {
			fmt.Fprintf(&out, "    %s\n", marks)
		}
	}
	return out.String()
}

func (p *Player) usage(node int) byte {
	if _, away := p.away[node]; away {
		return '#'
	}
	units := p.running.On(node)
	var held int64
	for _, u := range units {
		for _, h := range u.Holds {
			if h.Node == node {
				held += h.Demand[0]
			}
		}
	}
	switch {
	case held == 0:
		return '.'
	case len(units) == 1 && held == int64(p.scene.GPUs):
		return units[0].ID[0]
	default:
		return byte('0' + held%10)
	}
}

func (p *Player) leaseMark(node int) byte {
	for _, l := range p.machine.Leases() {
		if _, ok := slices.BinarySearch(l.Nodes, node); ok {
			mark := string(l.Owner)[:1]
			if l.Open {
				return strings.ToLower(mark)[0]
			}
			return strings.ToUpper(mark)[0]
		}
	}
	return ' '
}

// Queue lists the waiting jobs in order, with the reasons for their waits.
func (p *Player) Queue() string {
	var out strings.Builder
	for _, id := range p.machine.Waiting() {
		reason, _ := p.machine.Reason(id)
		fmt.Fprintf(&out, "%s: %s", id, reason.Cause)
		if len(reason.Of) > 0 {
			fmt.Fprintf(&out, " (%s)", join(reason.Of))
		}
		if of := reason.Sweep; of != nil {
			fmt.Fprintf(&out, " (%d of %d run, %d before it)", of.Running, of.Limit, of.Before)
		}
		switch b := reason.Unpaid; {
		case b == nil:
		case reason.Cause == contention.Costly:
			fmt.Fprintf(&out, ", %d GPU-min for %d", b.Won/minute, b.Lost/minute)
		case b.More:
			fmt.Fprintf(&out, "; evicting wins at most %d GPU-min and loses more", b.Won/minute)
		default:
			fmt.Fprintf(&out, "; evicting wins %d GPU-min and loses %d", b.Won/minute, b.Lost/minute)
		}
		if reason.At != contention.None && reason.At != 0 {
			fmt.Fprintf(&out, ", %s", Clock(reason.At))
		}
		out.WriteByte('\n')
	}
	if out.Len() == 0 {
		return "no job waits\n"
	}
	return out.String()
}

// minute is in seconds.
const minute = 60

// weighed returns the gain and the loss of an eviction, in GPU-minutes, for an owner that does not insist.
func (p *Player) weighed(a contention.Preempted) string {
	if p.insists(p.jobs[string(a.ID)]) {
		return ""
	}
	if !a.Balance.Pays() {
		p.fail("%s evicts %s for %+v", a.ID, join(a.Victims), a.Balance)
	}
	return fmt.Sprintf(" (%d GPU-min for %d)", a.Balance.Won/minute, a.Balance.Lost/minute)
}
