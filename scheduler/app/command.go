// Package app makes the command of the scheduler binary: kube-scheduler's own, with Lockstep's plugins and profile,
// after a probe of the cluster's features.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/manifests/release"
	"github.com/lockstep-project/lockstep/scheduler"
)

// Command is the scheduler's command. The returned function removes the files that a run leaves behind.
//
// The feature gates have to be set before kube-scheduler reads its options. So between the parsing of the flags and
// that, the API server is found and asked, and the gates are set from its answer, so that --feature-gates still wins.
func Command(ctx context.Context) (*cobra.Command, func()) {
	run := &prepared{options: options.NewOptions()}
	command := &cobra.Command{
		Use:   scheduler.ProfileName,
		Short: "A kube-scheduler that places whole gangs",
		Args:  cobra.NoArgs,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := run.prepare(ctx, c); err != nil {
				return err
			}
			if err := run.options.ComponentGlobalsRegistry.Set(); err != nil {
				return fmt.Errorf("setting feature gates: %w", err)
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return run.run(ctx, c) },
	}
	sets := run.options.Flags
	sets.FlagSet("global").Bool("version", false, "print the version and quit")
	command.Version = release.Current().Line(command.Name())
	command.SetVersionTemplate("{{.Version}}\n")
	globalflag.AddGlobalFlags(sets.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	sets.FlagSet("gangs").
		Func("gang-api", "where gangs are kept: native (scheduling.k8s.io), resources ("+gangapi.Group+
			"), or auto for where they were kept at the start before, or else native where the API server serves it (default auto)",
			func(text string) (err error) {
				run.wanted, err = gangapi.Parse(text)
				return err
			})
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(command.OutOrStdout()) // help wraps at a default without a terminal
	cliflag.SetUsageAndHelpFunc(command, *sets, columns)
	return command, run.clean
}

// ExitCode is the process's exit code for the command's error: 2 for a cluster or a configuration that cannot be used,
// 1 for any other. The error is printed as one line.
func ExitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	_, _ = fmt.Fprintln(stderr, "Error:", text) // no reader is left
	if wrong := (*ConfigError)(nil); errors.As(err, &wrong) || errors.Is(err, gangapi.ErrNoAPI) {
		return 2
	}
	return 1
}

// prepared holds the inputs of a run beyond its flags.
type prepared struct {
	options    *options.Options
	configFile string
	// wanted is the API of gangs that the flag names, offer the features of the cluster.
	wanted gangapi.API
	offer  probe.Offer
	// asked is a client of the cluster, namespace where the scheduler is installed.
	asked     kubernetes.Interface
	namespace string
}

func (p *prepared) prepare(ctx context.Context, c *cobra.Command) error {
	flags := c.Flags()
	config, err := readConfig(flags)
	if err != nil {
		return err
	}
	p.namespace = config.namespace()
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
	if p.asked, p.offer, err = ask(ctx, master, kubeconfig, p.namespace, p.wanted); err != nil {
		return err
	}
	return apply(p.offer)
}

// run runs the scheduler until the process is asked to end, the lease is lost, or gangs are stored in another API.
func (p *prepared) run(ctx context.Context, c *cobra.Command) error {
	gates := p.options.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(p.options.Logs, gates); err != nil {
		return fmt.Errorf("setting up logs: %w", err)
	}
	cliflag.PrintFlags(c.Flags())
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	made, err := assemble(ctx, p.options, p.offer.API)
	if err != nil {
		return err
	}
	if mutable, ok := gates.(featuregate.MutableFeatureGate); ok {
		mutable.AddMetrics()
	}
	p.options.ComponentGlobalsRegistry.AddMetrics()
	go made.keeper.Run(ctx)
	go made.grouper.Run(ctx)
	if made.requester != nil {
		go made.requester.Run(ctx)
	}
	go func() {
		if err := gangapi.Follow(ctx, p.asked, p.namespace, p.offer.API, clock.RealClock{}); err != nil {
			klog.FromContext(ctx).Info("Ending, to start again", "reason", err)
			stop()
		}
	}()
	return app.Run(ctx, made.config, made.scheduler) //nolint:wrapcheck // kube-scheduler's own words
}

func (p *prepared) clean() {
	if p.configFile != "" {
		_ = os.Remove(p.configFile) // a leftover in the temporary directory does no harm
	}
}
