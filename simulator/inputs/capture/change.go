package capture

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

// The kind of kwokctl's recorded changes.
const (
	patchGroup = "action.kwok.x-k8s.io"
	patchKind  = "ResourcePatch"
)

// recorded is a change as kwokctl writes it.
type recorded struct {
	Resource struct {
		Group    string `json:"group"`
		Resource string `json:"resource"`
	} `json:"resource"`
	Target struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"target"`
	// DurationNanosecond is since the recording began.
	DurationNanosecond int64        `json:"durationNanosecond"`
	Method             string       `json:"method"`
	Template           *corev1.Node `json:"template"`
}

// change records a change: nodes that are added and removed.
func (r *objects) change(document yamlfile.Document) error {
	resource, _ := document.Content["resource"].(map[string]any)
	group, _ := resource["group"].(string)
	plural, _ := resource["resource"].(string)
	method, _ := document.Content["method"].(string)
	if plural == "" || !slices.Contains([]string{"create", "patch", "delete"}, method) {
		return document.At(fmt.Sprintf("the method %q of a %s of resource %q is not known", method, patchKind, plural),
			"write create, patch or delete, and the resource")
	}
	if plural != "nodes" || group != "" || method == "patch" {
		r.passed[fmt.Sprintf("recorded changes (%s of %s)", method, plural)]++
		return nil
	}
	var c recorded
	if err := document.DecodeLenient(&c); err != nil {
		return err
	}
	switch {
	case c.Target.Name == "":
		return document.At("the "+patchKind+" names no node", "give it target.name", "target")
	case c.DurationNanosecond < 0:
		return document.At(
			fmt.Sprintf("the durationNanosecond is %d", c.DurationNanosecond),
			"write 0 or more",
			"durationNanosecond",
		)
	case method == "create" && c.Template == nil:
		return document.At("the node that is created is not there", "give it template", "template")
	}
	change := Change{At: time.Duration(c.DurationNanosecond), Name: c.Target.Name}
	if method == "create" {
		change.Node = c.Template
		change.Node.Name = c.Target.Name
		normalize(r.kinds[r.known[schema.GroupKind{Kind: "Node"}]], change.Node)
	}
	r.changes = append(r.changes, change)
	return nil
}
