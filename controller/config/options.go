package config

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
)

// Options are the controller's options.
type Options struct {
	// Kubeconfig is a file; empty means KUBECONFIG, then the service account, then ~/.kube/config.
	Kubeconfig string
	// Namespace is where the lease is, and where the probe at start asks for a PodGroup without creating it.
	Namespace string
	// LeaderElect lets several replicas run of which one works. Off starts a second faster.
	LeaderElect bool
	// MetricsBindAddress is where metrics are served; "0" switches them off.
	MetricsBindAddress string
	// HealthProbeBindAddress is where healthz and readyz are served; "0" switches them off.
	HealthProbeBindAddress string
	// GangDefault is "on" or "off": whether a job is a gang that does not say otherwise.
	GangDefault string
	// Workers is how many TrainJobs are reconciled at a time. More wait less behind slow API calls.
	Workers int
	// Verbosity is the level of logs: 2 decisions, 4 candidates.
	Verbosity int
}

// Default returns the options of a controller that was given none.
func Default() Options {
	return Options{
		Namespace:              "lockstep-system",
		MetricsBindAddress:     ":8080",
		HealthProbeBindAddress: ":8081",
		GangDefault:            "off",
		Workers:                5,
	}
}

// ErrHelp indicates that help was asked for, and written.
var ErrHelp = pflag.ErrHelp

// Parse reads options from a command line. Help goes to out.
func Parse(arguments []string, out io.Writer) (Options, error) {
	options := Default()
	flags := pflag.NewFlagSet("lockstep-controller", pflag.ContinueOnError)
	options.addFlags(flags)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(out, "Usage: lockstep-controller [flags]\n\n%s", flags.FlagUsages())
	}
	if err := flags.Parse(arguments); err != nil {
		return options, err //nolint:wrapcheck // the flag's name is in it
	}
	if flags.NArg() > 0 {
		return options, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return options, options.Validate()
}

func (o *Options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"kubeconfig file; without it KUBECONFIG, the service account or ~/.kube/config")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the lease and of the probe at start")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "work only while holding the lease")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		`address of the metrics; "0" for none`)
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		`address of healthz and readyz; "0" for none`)
	flags.StringVar(&o.GangDefault, "gang-default", o.GangDefault,
		"on or off: whether jobs are gangs that do not say otherwise")
	flags.IntVar(&o.Workers, "workers", o.Workers, "TrainJobs reconciled at a time")
	flags.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "verbosity of logs: 2 for decisions, 4 for candidates")
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	if o.GangDefault != "on" && o.GangDefault != "off" {
		return fmt.Errorf("--gang-default=%s: must be on or off", o.GangDefault)
	}
	if o.Workers < 1 {
		return fmt.Errorf("--workers=%d: must be at least 1", o.Workers)
	}
	if o.Verbosity < 0 {
		return fmt.Errorf("--v=%d: must be at least 0", o.Verbosity)
	}
	if o.Namespace == "" {
		return errors.New("--namespace: must not be empty")
	}
	return nil
}
