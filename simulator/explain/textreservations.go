package explain

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/lockstep-project/lockstep/scheduler/reservations"
)

// WriteReservations prints the reservations of a scheduler as a table.
func WriteReservations(out io.Writer, list reservations.List, now time.Time) error {
	if len(list.Items) == 0 {
		_, err := fmt.Fprintln(out, "No reservations.")
		return wrapPrint(err)
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0) //nolint:mnd // the gap of kubectl's tables
	rows := []string{"OWNER\tREASON\tPLACE\tNODES\tSTATE\tEXPECTED FREE\tAGE\tIDLE/BUDGET (ACCELERATOR HOURS)"}
	for _, r := range list.Items {
		state, free, budget := "closed", "unknown", "-"
		if r.Open {
			state = "open"
		}
		if r.Expected != nil {
			free = r.Expected.UTC().Format(time.RFC3339)
			if r.Estimated {
				free += " (estimate)"
			}
		}
		if r.Expires != nil {
			free = "-"
			state += " until " + r.Expires.UTC().Format(time.RFC3339)
		}
		if r.BudgetHours > 0 {
			budget = fmt.Sprintf("%.1f/%.1f", r.IdleHours, r.BudgetHours)
		}
		rows = append(
			rows,
			fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s", r.Owner, r.Reason, r.Domain, len(r.Nodes), state, free,
				duration.HumanDuration(now.Sub(r.Since.Time)), budget),
		)
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(table, row); err != nil {
			return wrapPrint(err)
		}
	}
	return wrapPrint(table.Flush())
}

func wrapPrint(err error) error {
	if err != nil {
		return fmt.Errorf("printing reservations: %w", err)
	}
	return nil
}
