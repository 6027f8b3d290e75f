package whatif_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/scheduler/whatif/whatiftest"
)

// TestScripts plays the scenes in testdata. Commands that draw are in whatiftest; questions are:
//
//	why x [unpriced] the verdict about a gang, where an eviction need not pay
//	with x ...       the same of one that is added (as waits), which is forgotten afterwards
//	queue            the verdicts about all that wait
//	drain WORD...    the units that the drain of nodes displaces, and their verdicts
func TestScripts(t *testing.T) {
	whatiftest.Play(t, "testdata", func(t *testing.T, objects whatif.Objects, d *datadriven.TestData) string {
		t.Helper()
		before := copied(objects)
		answer := ask(t, objects, d)
		if again := ask(t, objects, d); again != answer {
			t.Errorf("%s: the second answer is another one:\n%s", d.Pos, again)
		}
		if diff := cmp.Diff(before, objects); diff != "" {
			t.Errorf("%s: the objects were changed by the question (-before +after):\n%s", d.Pos, diff)
		}
		return answer
	})
}

// copied is a copy of all that a question could change.
func copied(o whatif.Objects) whatif.Objects {
	out := whatif.Objects{Replaces: maps.Clone(o.Replaces)}
	for _, node := range o.Nodes {
		out.Nodes = append(out.Nodes, node.DeepCopy())
	}
	for _, pod := range o.Pods {
		out.Pods = append(out.Pods, pod.DeepCopy())
	}
	for _, group := range o.PodGroups {
		out.PodGroups = append(out.PodGroups, group.DeepCopy())
	}
	for _, budget := range o.Budgets {
		out.Budgets = append(out.Budgets, budget.DeepCopy())
	}
	for _, class := range o.PriorityClasses {
		out.PriorityClasses = append(out.PriorityClasses, class.DeepCopy())
	}
	for _, claim := range o.Devices.Claims {
		out.Devices.Claims = append(out.Devices.Claims, claim.DeepCopy())
	}
	for _, slice := range o.Devices.Slices {
		out.Devices.Slices = append(out.Devices.Slices, slice.DeepCopy())
	}
	for _, class := range o.Devices.Classes {
		out.Devices.Classes = append(out.Devices.Classes, class.DeepCopy())
	}
	for _, template := range o.Devices.Templates {
		out.Devices.Templates = append(out.Devices.Templates, template.DeepCopy())
	}
	return out
}

func ask(t *testing.T, objects whatif.Objects, d *datadriven.TestData) string {
	t.Helper()
	profile := whatiftest.Profile()
	if d.HasArg("unpriced") {
		profile.Placement.Preemption.Prices = []config.Price{}
	}
	r, err := whatif.New(objects, profile, whatiftest.Now())
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	var answer string
	switch d.Cmd {
	case "why":
		var v whatif.Verdict
		v, err = r.Why(t.Context(), types.NamespacedName{Namespace: "default", Name: d.CmdArgs[0].Key})
		answer = sayVerdict(v)
	case "with":
		more := objects
		more.PodGroups, more.Pods, more.Devices = nil, nil, whatif.Devices{}
		waits := *d
		waits.Cmd = "waits"
		if _, err := whatiftest.Draw(&more, &waits); err != nil {
			d.Fatalf(t, "%v", err)
		}
		var v whatif.Verdict
		v, err = r.With(more.PodGroups[0], more.Pods, more.Devices).
			Why(t.Context(), types.NamespacedName{Namespace: "default", Name: d.CmdArgs[0].Key})
		answer = sayVerdict(v)
	case "queue":
		var all []whatif.Verdict
		all, err = r.Queue(t.Context())
		var b strings.Builder
		for _, v := range all {
			b.WriteString(sayVerdict(v))
		}
		answer = b.String()
	case "drain":
		var words []string
		for _, arg := range d.CmdArgs {
			words = append(words, arg.String())
		}
		var out whatif.Displaced
		out, err = r.Drain(t.Context(), words)
		answer = sayDrain(out)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	if unclear, ok := errors.AsType[*whatif.SelectionError](err); ok {
		return fmt.Sprintf("%s; %s: %s\n", unclear, unclear.Of, strings.Join(unclear.Known, " "))
	}
	if err != nil {
		return err.Error() + "\n"
	}
	return answer
}

func sayVerdict(v whatif.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Gang.Name.Name, v.State)
	if v.Gang.Position > 0 {
		fmt.Fprintf(&b, ", %d in the queue", v.Gang.Position)
	}
	if v.Where != nil {
		fmt.Fprintf(&b, ", %s", sayWhere(*v.Where))
	}
	b.WriteString("\n")
	if m := v.Missing; m != nil {
		fmt.Fprintf(
			&b,
			"  %d of %d there, indexes %v missing, gates %v, %d leaving\n",
			m.Exist,
			m.Needed,
			m.Indexes,
			m.Gates,
			m.Leaving,
		)
	}
	if v.Problem != "" {
		fmt.Fprintf(&b, "  problem: %s\n", v.Problem)
	}
	if v.Shortfall != nil {
		fmt.Fprintf(&b, "  %s%s\n", v.Shortfall, v.Note)
	}
	if v.Behind != nil {
		fmt.Fprintf(&b, "  behind, %s; would end %s\n", sayTime(v.Behind.At), sayTime(v.Behind.End))
		for _, of := range v.Behind.Of {
			sayReservation(&b, of)
		}
	}
	if len(v.After) > 0 {
		fmt.Fprintf(&b, "  after %v\n", v.After)
	}
	if len(v.Passes) > 0 {
		fmt.Fprintf(&b, "  passes %v\n", v.Passes)
	}
	if v.Vacated {
		b.WriteString("  when the victims of others have left\n")
	}
	if v.Cause == contention.NoEnd {
		b.WriteString("  no end makes room\n")
	}
	if v.Reserved != nil {
		sayReservation(&b, *v.Reserved)
	}
	if p := v.Preemption; p != nil {
		fmt.Fprintf(&b, "  costs %d GPU-s, cheapest %t, exceeds %v\n", p.Lost, p.Cheapest, p.Exceeded)
		for _, victim := range p.Victims {
			fmt.Fprintf(&b, "    evicts %s: priority %d, %d pods, %d GPUs, %d GPU-s\n",
				victim.Name, victim.Priority, victim.Pods, victim.Accelerators, victim.Lost)
		}
	}
	if v.NoVictims != "" {
		fmt.Fprintf(&b, "  no victims: %s\n", v.NoVictims)
	}
	return b.String()
}

func sayReservation(b *strings.Builder, r whatif.Reservation) {
	open := ""
	if r.Open {
		open = ", open"
	}
	guess := map[bool]string{true: "estimated "}
	fmt.Fprintf(b, "  reserved for %s (%s%s): %s%s, %s\n",
		r.For.Name, r.Reason, open, guess[r.Estimated], sayTime(r.At), sayWhere(r.Where))
	for _, w := range r.Waits {
		overdue := ""
		if w.Overdue {
			overdue = "overdue, "
		}
		fmt.Fprintf(b, "    when %s ends: %s%s%s, %d GPUs\n",
			w.Name, overdue, guess[w.Estimated], sayTime(w.End), w.Accelerators)
	}
}

func sayWhere(w whatif.Where) string {
	var members []string
	for _, m := range w.Members {
		member := m.Node
		if m.Late {
			member += "(late)"
		}
		if !m.New {
			member += "(runs)"
		}
		members = append(members, member)
	}
	return fmt.Sprintf("%s: %s", w.Within, strings.Join(members, " "))
}

func sayTime(at time.Time) string {
	if at.IsZero() {
		return "unknown"
	}
	return "in " + at.Sub(whatiftest.Now()).String()
}

func sayDrain(d whatif.Displaced) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d stay, %d GPU-s lost, exceeds %v, settled %t\n",
		strings.Join(d.Nodes, " "), d.Stay, d.Lost, d.Exceeded, d.Settled())
	for _, m := range d.Moves {
		fmt.Fprintf(&b, "%s ends (%s on them), %d GPUs, %d GPU-s, forever %t, then\n",
			strings.Join(m.Pods, " "), strings.Join(m.Drained, " "), m.Accelerators, m.Lost, m.Forever)
		b.WriteString(sayVerdict(m.Verdict))
	}
	return b.String()
}
