// Package cli is the command line of lockstep: flags in, one call into the laboratory, an exit code out.
//
// The exit codes are a contract: 0 done; 1 the run finished with unplaced work or a failed check, or something broke; 2
// bad input, reported in one line that names the fault, the place and the remedy; 130 interrupted by Ctrl-C.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

const (
	exitDone     = 0
	exitUnplaced = 1
	exitBadInput = 2
	// exitInterrupted is the exit code that a shell reports for a process ended by SIGINT.
	exitInterrupted = 130
)

// errUnplaced indicates that a run finished with work that was not done; the reason has been printed already.
var errUnplaced = errors.New("not every job completed")

// childError is the exit code of another process, which has said why.
type childError int

func (s childError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Environment is the part of the outside world that a command may touch.
type Environment struct {
	// In is standard input; nil where there is none.
	In io.Reader
	// Out takes the answer and nothing else, Err takes progress and errors.
	Out, Err io.Writer
	Clock    clock.WithTicker
}

// Run executes one command line and returns its exit code.
func Run(ctx context.Context, args []string, env Environment) int {
	if code, is := supervise(ctx); is {
		return code
	}
	root := newRoot(env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var status childError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errUnplaced):
		return exitUnplaced
	case errors.As(err, &status):
		return int(status)
	case badinput.Is(err):
		_, _ = fmt.Fprintln(env.Err, "lockstep: "+err.Error()) // there is nowhere left to complain
		return exitBadInput
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		_, _ = fmt.Fprintln(env.Err, "lockstep: interrupted")
		return exitInterrupted
	default:
		_, _ = fmt.Fprintln(env.Err, "lockstep: "+err.Error())
		return exitUnplaced
	}
}

func newRoot(env Environment) *cobra.Command {
	root := &cobra.Command{
		Use:           "lockstep",
		Short:         "Gang, topology and NVLink aware scheduling of distributed training, on a cluster in a box",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usage(cobra.NoArgs),
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error { return misuse(command, err) })
	root.AddCommand(
		newUp(env),
		newSimulate(env),
		newCompare(env),
		newFleet(env),
		newSnapshot(
			env,
		),
		newExplain(env),
		newMigrate(env),
		newAdopt(env),
		newManifests(env),
		newCRDs(env),
		newCleanup(env),
		newDoctor(env),
		newSupportBundle(env),
		newVersion(env),
	)
	complete(root)
	return root
}

// usage makes a wrong number of arguments, or an unknown command, bad input.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if err := check(command, args); err != nil {
			return misuse(command, err)
		}
		return nil
	}
}

func misuse(command *cobra.Command, err error) error {
	return &badinput.Error{
		Where: strings.TrimPrefix(strings.TrimPrefix(command.CommandPath(), "lockstep"), " "),
		What:  err.Error(),
		Mend:  "see " + command.CommandPath() + " --help",
	}
}
