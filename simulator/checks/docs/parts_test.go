package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// parts draws the components that a TrainJob passes on its way to its ranks.
func parts(t *testing.T) string {
	t.Helper()
	d := &drawing{width: 780, height: 250}
	box := func(x, y, width float64, color, title, room, what string) {
		if room != "" {
			if _, err := os.Stat(filepath.Join(root, room)); err != nil {
				t.Error(err)
			}
		}
		d.rect(x, y, width, 62, fmt.Sprintf(`fill="%s" stroke="#555555"`, color))
		d.text(x+width/2, y+20, "middle", title)
		d.text(x+width/2, y+36, "middle", what)
		if room != "" {
			d.text(x+width/2, y+52, "middle", room+"/")
		}
	}
	const service, pure, object = "#8ecae6", "#90be6d", "#f2f2f2"
	box(10, 30, 130, object, "TrainJob", "", "kubectl, Kubeflow SDK")
	box(190, 30, 180, service, "lockstep-controller", "controller", "job + runtime → plan")
	box(420, 30, 150, object, "PodGroup, JobSet", "", "the group comes first")
	box(620, 30, 150, object, "Pods", "", "members of the gang")
	box(620, 150, 150, service, "lockstep-scheduler", "scheduler", "plugins, thin")
	box(420, 150, 150, pure, "which gang is next", "scheduler/contention", "pure")
	box(220, 150, 150, pure, "where it starts", "topology", "pure")
	box(20, 150, 150, pure, "with which devices", "dra", "Kubernetes' allocator")
	arrow := func(x1, y1, x2, y2 float64) {
		_, _ = fmt.Fprintf(
			&d.body,
			`<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke="#555555" stroke-width="1.5" marker-end="url(#tip)"/>`+"\n",
			x1,
			y1,
			x2,
			y2,
		)
	}
	d.body.WriteString(
		`<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555555"/></marker></defs>` + "\n",
	)
	arrow(140, 61, 190, 61)
	arrow(370, 61, 420, 61)
	arrow(570, 61, 620, 61)
	arrow(695, 92, 695, 150)
	arrow(620, 181, 570, 181)
	arrow(420, 181, 370, 181)
	arrow(220, 181, 170, 181)
	d.text(
		10,
		240,
		"start",
		"The green parts are functions of values: the simulator and lockstep explain drive the same code.",
	)
	return d.svg(
		"A TrainJob becomes a PodGroup, a JobSet and pods by lockstep-controller; lockstep-scheduler asks pure code which gang is next and where it starts",
	)
}
