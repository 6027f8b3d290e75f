package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// InWords returns a sentence for each scheduler but the first on the differences between the first and it: the size of
// jobs that pays most and the one that gains most, the size with more at stake before the other, then the waits of all
// jobs and the goodput. There are none for runs that are not comparable, or of openb's, which have no time.
func (t Table) InWords() []string {
	if t.Watermark != "" || t.Allocation != nil || len(t.Schedulers) < 2 {
		return nil
	}
	judged := t.Headline()
	var out []string
	for i := range t.Schedulers[1:] {
		out = append(out, judged.sentence(i))
	}
	return out
}

// The rows of the headline, the most important one first.
const (
	rowGoodput = "goodput.mean"
	rowByHours = "by_gpu_hours.wait_seconds_mean"
	rowMean    = "wait_seconds.mean"
	rowLongest = "wait_seconds.max"
)

// Headline returns the table with the four figures that decide (package criteria) and the waits by class, whose
// verdicts are corrected as one family (Corrected).
func (t Table) Headline() Table {
	rows := make([]Row, 0, len(t.Classes))
	var names []string
	for _, name := range []string{rowGoodput, rowByHours, rowMean, rowLongest} {
		if at := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == name }); at >= 0 {
			rows = append(rows, t.Rows[at])
		}
	}
	own := len(rows)
	for _, c := range t.Classes {
		rows = append(rows, c.Wait)
	}
	for _, r := range rows {
		names = append(names, r.Name)
	}
	t.Rows = rows
	t = t.Corrected(names)
	t.Classes = slices.Clone(t.Classes)
	for i := range t.Classes {
		t.Classes[i].Wait = t.Rows[own+i]
	}
	t.Rows = t.Rows[:own]
	return t
}

// sentence is about one of the others. If all of it may be chance, that is said once.
func (t Table) sentence(other int) string {
	parts, shown := []string{t.bySize(other)}, t.sizes(other)
	for _, f := range []struct {
		name, text string
		say        func(Difference) string
	}{
		{rowMean, "the mean wait is ", waitShift},
		{rowByHours, "the wait by GPU-hours is ", waitShift},
		{rowGoodput, "goodput is ", points},
	} {
		if d, found := t.difference(f.name, other); found {
			parts, shown = append(parts, f.text+f.say(d)), append(shown, d)
		}
	}
	text := strings.Join(parts, "; ") + "."
	is := func(verdicts ...Verdict) bool {
		return slices.ContainsFunc(shown, func(d Difference) bool { return slices.Contains(verdicts, d.Verdict) })
	}
	if is(Unclear) && !is(Better, Worse) {
		text = strings.ReplaceAll(text, doubtful, "") + " None of this is significant."
	}
	if len(t.Seeds) == 1 {
		text += " One seed proves nothing about others."
	}
	return text
}

// difference is the headline's figure of one of the others less the first's.
func (t Table) difference(name string, other int) (Difference, bool) {
	at := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == name })
	if at < 0 {
		return Difference{}, false
	}
	return t.Rows[at].Against[other], true
}

// noticed is the difference of waits, in seconds, below which they are called equal.
const noticed = 1

// stake returns the stake of a class between the first and another scheduler: GPU-hours times seconds of waiting.
func (t Table) stake(class, other int) float64 {
	return math.Abs(t.Classes[class].Wait.Against[other].Mean) * t.Classes[class].GPUHours
}

// extremes are the classes with most at stake that the first scheduler starts earlier, and later; -1 for none.
func (t Table) extremes(other int) (earlier, later int) {
	earlier, later = -1, -1
	for i, c := range t.Classes {
		switch d := c.Wait.Against[other].Mean; {
		case d >= noticed && (earlier < 0 || t.stake(i, other) > t.stake(earlier, other)):
			earlier = i
		case d <= -noticed && (later < 0 || t.stake(i, other) > t.stake(later, other)):
			later = i
		}
	}
	return earlier, later
}

// sizes are the differences that bySize names.
func (t Table) sizes(other int) []Difference {
	var out []Difference
	earlier, later := t.extremes(other)
	for _, class := range []int{earlier, later} {
		if class >= 0 {
			out = append(out, t.Classes[class].Wait.Against[other])
		}
	}
	return out
}

// bySize is the clause about the sizes with most at stake, the larger stake first.
func (t Table) bySize(other int) string {
	first, name := t.Schedulers[0], t.Schedulers[other+1]
	earlier, later := t.extremes(other)
	switch {
	case earlier < 0 && later < 0 && len(t.Classes) > 0:
		return first + " starts jobs of every size when " + name + " does"
	case earlier < 0 && later < 0:
		return first + " against " + name
	case later < 0:
		return fmt.Sprintf("%s starts %s than %s, and no size later", first, t.clause(earlier, other), name)
	case earlier < 0:
		return fmt.Sprintf("%s starts %s than %s, and no size earlier", first, t.clause(later, other), name)
	case t.stake(earlier, other) > t.stake(later, other):
		return fmt.Sprintf(
			"%s starts %s than %s, and %s",
			first,
			t.clause(earlier, other),
			name,
			t.clause(later, other),
		)
	}
	return fmt.Sprintf("%s starts %s than %s, and %s", first, t.clause(later, other), name, t.clause(earlier, other))
}

// clause is about one size: "gangs of more than 64 nodes 38 % (5 h 2 min) earlier".
func (t Table) clause(class, other int) string {
	c := t.Classes[class]
	return sized(c.Name) + " " + c.Wait.Against[other].Shift(c.Wait.Means[other+1])
}

// sized names the jobs of a class.
func sized(class string) string {
	switch class {
	case "no GPU":
		return "jobs without a GPU"
	case "1 GPU", "one node":
		return "jobs of " + class
	}
	return "gangs of " + class
}

// Shift describes a difference of waits: the time by which the first starts earlier or later than a scheduler that
// waits theirs seconds, and its significance.
func (d Difference) Shift(theirs float64) string {
	if math.Abs(d.Mean) < noticed {
		return "at the same time"
	}
	by := lasting(math.Abs(d.Mean))
	if d.Mean > 0 {
		const percent = 100
		return fmt.Sprintf("%.0f %% (%s) earlier%s", percent*d.Mean/theirs, by, doubt(d.Verdict))
	}
	return by + " later" + doubt(d.Verdict)
}

// waitShift describes the amount by which the first's wait is shorter or longer.
func waitShift(d Difference) string {
	switch {
	case math.Abs(d.Mean) < noticed:
		return "the same"
	case d.Mean > 0:
		return lasting(d.Mean) + " shorter" + doubt(d.Verdict)
	}
	return lasting(-d.Mean) + " longer" + doubt(d.Verdict)
}

// points describes the percentage points by which the first's goodput differs, to a hundredth.
func points(d Difference) string {
	const percent, hundredth = 100, 0.005
	by := math.Abs(d.Mean) * percent
	text := strconv.FormatFloat(by, 'f', 1, 64)
	if by < 0.05 {
		text = strconv.FormatFloat(by, 'f', 2, 64)
	}
	switch {
	case by < hundredth:
		return "the same"
	case d.Mean > 0:
		return text + " points lower" + doubt(d.Verdict)
	}
	return text + " points higher" + doubt(d.Verdict)
}

// doubtful follows differences that may be chance.
const doubtful = " (not significant)"

func doubt(v Verdict) string {
	if v == Unclear {
		return doubtful
	}
	return ""
}

func lasting(seconds float64) string {
	return measure.Lasting(time.Duration(min(seconds, math.MaxInt64/2e9) * float64(time.Second)))
}
