package cost

import (
	"fmt"
	"strconv"
	"strings"
)

// Tables returns the parameters of the model, as Markdown: links by network, shares by class, seconds of starts, and
// failures.
func Tables() string {
	var b strings.Builder
	b.WriteString(
		"| network | inside a node or NVLink domain | between nodes of a leaf | between leaves | between pods | source |\n" +
			"|---|--:|--:|--:|--:|---|\n",
	)
	for _, n := range Networks() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", n.Name, n.Inside, n.Leaf, n.Spine, n.Core, n.Source)
	}
	fmt.Fprintf(
		&b,
		"\nBandwidths are of one accelerator in one direction, in GB/s; an all-reduce sums up %d GB.\n",
		bytes/1_000_000_000,
	)
	b.WriteString("\n| class of jobs | share of communication | source |\n|---|--:|---|\n")
	for _, c := range classes() {
		fmt.Fprintf(&b, "| %s | %s %% | %s |\n", c.Name, tenths(c.Share), c.Source)
	}
	b.WriteString("\n| before the first step | seconds |\n|---|--:|\n")
	for _, row := range []struct {
		what    string
		seconds int64
	}{
		{"a single pod", binding},
		{"a gang", assembly},
		{fmt.Sprintf("resuming from a checkpoint, at most %d accelerators", small), reloadSmall},
		{"resuming from a checkpoint, more accelerators", reload},
	} {
		fmt.Fprintf(&b, "| %s | %d |\n", row.what, row.seconds)
	}
	b.WriteString("\n| what fails | failures per 1,000 days of one | away, hours |\n|---|--:|--:|\n")
	for _, row := range []struct {
		what          string
		rate, longest int64
	}{
		{"a node", nodeRate, nodeLongest},
		{"an NVLink domain of several nodes", domainRate, rackLongest},
		{"a domain of the innermost network level (rack)", rackRate, rackLongest},
	} {
		fmt.Fprintf(
			&b,
			"| %s | %s | %d to %d |\n",
			row.what,
			hundredths(row.rate*24/10),
			shortest/3600,
			row.longest/3600,
		)
	}
	return b.String()
}

// String returns the bandwidth in GB/s.
func (l Link) String() string { return strconv.FormatFloat(float64(l.MBps/10)/100, 'f', -1, 64) }

// tenths prints thousandths as per cent.
func tenths(thousandths int64) string {
	return strconv.FormatFloat(float64(thousandths)/10, 'f', -1, 64)
}

// hundredths prints hundredths of one.
func hundredths(n int64) string { return strconv.FormatFloat(float64(n)/100, 'f', 2, 64) }
