// Package start makes the command of the scheduler binary: kube-scheduler's own, with Lockstep's plugins and profile,
// after the cluster was asked what it offers.
package start

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/lockstep-project/lockstep/scheduler"
)

// NoGangsError is returned by the command if the cluster serves no PodGroups. Its text says how to switch them on.
type NoGangsError struct{ Missing string }

func (e *NoGangsError) Error() string { return e.Missing }

// Command is the scheduler's command. The returned function removes what a run leaves behind.
//
// What has to be known before kube-scheduler reads its options happens between the parsing of the flags and that: the
// API server is found and asked, and the feature gates are set from its answer, so that --feature-gates still wins.
func Command(ctx context.Context) (*cobra.Command, func()) {
	options, fault := scheduler.Options()
	command := app.NewSchedulerCommand(options...)
	command.Use = scheduler.ProfileName
	run := &prepared{}
	setGates := command.PersistentPreRunE
	command.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		verflag.PrintAndExitIfRequested()
		if fault != nil {
			return fault
		}
		if err := run.prepare(ctx, c); err != nil {
			return err
		}
		return setGates(c, args)
	}
	return command, run.clean
}

// ExitCode is the process's exit code for the command's error: 2 for a cluster or a configuration that cannot be used, 1
// for any other. The error is printed as one line.
func ExitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	_, _ = fmt.Fprintln(stderr, "Error:", text) // nobody is left to tell
	none, wrong := (*NoGangsError)(nil), (*ConfigError)(nil)
	if errors.As(err, &none) || errors.As(err, &wrong) {
		return 2
	}
	return 1
}

// prepared is what a run needs beyond its flags.
type prepared struct{ configFile string }

func (p *prepared) prepare(ctx context.Context, c *cobra.Command) error {
	flags := c.Flags()
	config, err := readConfig(flags)
	if err != nil {
		return err
	}
	kubeconfig, changed := config.kubeconfig(flags, os.Getenv("KUBECONFIG"))
	if changed {
		if p.configFile, err = config.write(kubeconfig); err != nil {
			return err
		}
		if err := flags.Set("config", p.configFile); err != nil {
			return fmt.Errorf("setting --config: %w", err)
		}
	}
	master, err := flags.GetString("master")
	if err != nil {
		return fmt.Errorf("reading --master: %w", err)
	}
	offer, err := ask(ctx, master, kubeconfig)
	if err != nil {
		return err
	}
	return apply(offer)
}

func (p *prepared) clean() {
	if p.configFile != "" {
		_ = os.Remove(p.configFile) // a leftover in the temporary directory harms nobody
	}
}
