package operators_test

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

// row holds the observations of a kind: a column is empty until its scene has passed.
type row struct {
	kind

	whole, order, waits, lost, removed string
}

// table is the kinds with their observations, as text.
func table(rows []row) string {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "KIND\tMADE BY\tDIALECT\tPLACED WHOLE\tRANKS\tTOO LARGE\tA MEMBER IS LOST\tOWNER DELETED")
	for _, r := range rows {
		columns := []string{r.title, r.maker(), r.dialectOrNative(), r.whole, r.order, r.waits, r.lost, r.removed}
		for i, column := range columns {
			if column == "" {
				columns[i] = "FAILED"
			}
		}
		_, _ = fmt.Fprintln(out, strings.Join(columns, "\t"))
	}
	_ = out.Flush() // into memory
	return text.String()
}

func (k kind) dialectOrNative() string {
	if k.dialect == "" {
		return "native"
	}
	return k.dialect
}

// publish has docs/dialects.md show the table. A run of some of the kinds only prints it.
func publish(t *testing.T, rows []row) {
	t.Helper()
	text := table(rows)
	t.Logf("\n%s", text)
	if len(rows) < len(kinds()) || t.Failed() {
		return
	}
	page.Page{
		File:   "docs/dialects.md",
		Marker: "make test-operators",
		Write:  *write,
		Mend:   "make test-operators OPERATORS=-write",
	}.Has(t, map[string]string{"kinds": strings.TrimSpace(text)})
}
