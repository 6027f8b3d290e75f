//go:build !linux

package cli

import (
	"context"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// supervise reports that this process supervises nothing.
func supervise(context.Context) (code int, is bool) { return 0, false }

// runReal refuses real nodes.
func (u up) runReal(context.Context) error {
	return &badinput.Error{
		Where: "--nodes " + u.options.nodes, What: "containers need Linux", Mend: "leave it out, or run on Linux",
	}
}
