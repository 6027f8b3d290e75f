package schedulers

import (
	"slices"
	"strings"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// variant is Lockstep with one rule changed, so that a comparison shows the value of the rule.
type variant struct {
	// name follows Lockstep and a colon; source describes the difference.
	name, source string
	change       func(*direct.Options)
}

// variants lists the ablations, in the order of reports.
func variants() []variant {
	return []variant{
		{"greedy", "its placement alone: no reservations, no preemption", func(o *direct.Options) {
			o.Discipline, o.Preempt = direct.Greedy, false
		}},
		{"nopreempt", "without preemption", func(o *direct.Options) { o.Preempt = false }},
		{"noreserve", "without reservations", func(o *direct.Options) { o.Discipline = direct.Unreserved }},
		{
			"fifo",
			"no entity passes the first one that has a reservation",
			func(o *direct.Options) { o.Discipline = direct.Strict },
		},
		{"backfill", "in the order of arrival", func(o *direct.Options) { o.Discipline = direct.Backfill }},
		{"unpriced", "preempting whatever that costs", func(o *direct.Options) { o.Unpriced = true }},
		{"apart", "starting gangs on any nodes", func(o *direct.Options) { o.Apart = true }},
		{"trusting", "reserving for guesses as for known ends", func(o *direct.Options) { o.Trusting = true }},
		{"rigid", "starting elastic gangs whole", func(o *direct.Options) { o.Rigid = true }},
		{"unlimited", "running as many trials of a sweep as fit", func(o *direct.Options) { o.Unlimited = true }},
		{"learned", "with run times predicted from those that have ended", func(o *direct.Options) { o.Learns = true }},
		{"perfect", "knowing when everything really ends", func(o *direct.Options) { o.Foresight = direct.Perfect }},
	}
}

// variantOf returns the variant that a name asks for, which changes nothing for Lockstep itself; false if there is
// none.
func variantOf(name string) (variant, bool) {
	switch name {
	case Lockstep:
		return variant{change: func(*direct.Options) {}}, true
	case Optimum:
		name = Lockstep + ":perfect"
	}
	of, suffix, found := strings.Cut(name, ":")
	if v, is := numbered(suffix); of == Lockstep && is {
		return v, true
	}
	at := slices.IndexFunc(variants(), func(v variant) bool { return v.name == suffix })
	if of != Lockstep || !found || at < 0 {
		return variant{}, false
	}
	return variants()[at], true
}

// Variants returns the names of the ablations of Lockstep. Only the engine Direct plays them.
func Variants() []string {
	var names []string
	for _, v := range variants() {
		names = append(names, Lockstep+":"+v.name)
	}
	return names
}

// product is the decision core, which learns ends from owners' deadlines.
func product(name string, of variant, wall clock.PassiveClock) Scheduler {
	o := direct.Options{Preempt: true}
	of.change(&o)
	s := Scheduler{
		Name:       name,
		On:         Direct,
		Source:     "the production decision core",
		Discipline: o.Discipline.String(),
		TieRule:    tieRule,
		Engine:     direct.NewEngine(o, wall.Now),
	}
	if of.source != "" {
		s.Source += ", " + of.source
	}
	return s
}

// tieRule is the product's (promise P5 of package topology).
const tieRule = "least cost, then the innermost and tightest domain, then names in natural order"
