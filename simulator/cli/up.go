package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/liverun"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// upOptions are the flags of lockstep up.
type upOptions struct {
	fleet string
	jobs  []string
	kueue bool
	// mode is empty for the best one of the release.
	mode       string
	kubernetes string
	hold       bool
	dir        string
	output     string
	port       int
	patience   time.Duration
	nodes      string
	// realNodes is the number of kubelets, read from nodes.
	realNodes int
}

func newUp(env Environment) *cobra.Command {
	var options upOptions
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring up a real cluster with a simulated fleet, run TrainJobs on it, and show where each rank went",
		Args:  usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.validate(); err != nil {
				return err
			}
			u := up{env: env, options: options, started: env.Clock.Now()}
			return u.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(
		&options.fleet,
		"fleet",
		"gb200-72",
		"a built-in fleet (see lockstep fleet list), or a file of nodes",
	)
	flags.StringArrayVar(
		&options.jobs,
		"jobs",
		nil,
		"a file or folder of TrainJobs (repeatable; default manifests/samples, or manifests/samples-kueue)",
	)
	flags.BoolVar(&options.kueue, "kueue", false, "run Kueue too (built once, in minutes), for jobs that name a queue")
	flags.StringVar(
		&options.mode,
		"mode",
		"",
		"what the API server offers: full, groups (fewer gates), or resources (none; default full, or resources before "+
			cluster.NewestKubernetes+")",
	)
	flags.StringVar(&options.kubernetes, "kubernetes", cluster.NewestKubernetes,
		"the minor release of the control plane: "+strings.Join(cluster.Kubernetes(), ", ")+" (built once, in minutes)")
	flags.StringVar(&options.nodes, "nodes", "",
		"real:N adds N nodes with a real kubelet and containerd each (Linux, root; see make nodes userland)")
	flags.BoolVar(&options.hold, "hold", false, "keep the cluster after the last job, until Ctrl-C")
	flags.StringVar(
		&options.dir,
		"dir",
		stateDir,
		"the state directory: kubeconfig, logs, data; emptied at the start",
	)
	flags.StringVarP(&options.output, "output", "o", "text", "the answer's form: text or json")
	flags.IntVar(&options.port, "port", 0, "the API server's port on loopback (default a free one)")
	flags.DurationVar(&options.patience, "patience", 30*time.Second,
		"how long a gang may wait unplaced while no other job is running")
	return command
}

func (o *upOptions) validate() error {
	if o.mode == "" {
		o.mode = string(cluster.DefaultMode(o.kubernetes))
	}
	if err := cluster.CheckKubernetes(o.kubernetes, probe.Mode(o.mode)); err != nil {
		return err
	}
	if err := o.countNodes(); err != nil {
		return err
	}
	if o.output != "text" && o.output != "json" {
		return &badinput.Error{Where: "-o " + o.output, What: "there is no such form", Mend: "use text or json"}
	}
	if o.port < 0 || o.port > 65535 {
		return &badinput.Error{
			Where: fmt.Sprintf(
				"--port %d",
				o.port,
			),
			What: "there is no such port",
			Mend: "use 1 to 65535, or 0 for a free one",
		}
	}
	if o.patience <= 0 {
		return &badinput.Error{
			Where: "--patience " + o.patience.String(),
			What:  "it must be above zero",
			Mend:  "use a duration such as 30s",
		}
	}
	return nil
}

// maxRealNodes limits the kubelets on one machine.
const maxRealNodes = 16

// countNodes reads --nodes.
func (o *upOptions) countNodes() error {
	if o.nodes == "" {
		return nil
	}
	count, found := strings.CutPrefix(o.nodes, "real:")
	number, err := strconv.Atoi(count)
	if !found || err != nil || number < 1 || number > maxRealNodes {
		return &badinput.Error{
			Where: "--nodes " + o.nodes, What: "there are no such nodes",
			Mend: fmt.Sprintf("use real:N with N from 1 to %d", maxRealNodes),
		}
	}
	o.realNodes = number
	return nil
}

// up is one run of the command.
type up struct {
	env     Environment
	options upOptions
	started time.Time
}

func (u up) run(ctx context.Context) error {
	if u.options.realNodes > 0 {
		return u.runReal(ctx)
	}
	return u.runOn(ctx, func(options cluster.Options) (*cluster.Cluster, error) { return cluster.Start(ctx, options) })
}

// runOn runs the command on the cluster that start brings up.
func (u up) runOn(ctx context.Context, start func(cluster.Options) (*cluster.Cluster, error)) error {
	machines, err := fleet.Open(u.options.fleet)
	if err != nil {
		return err
	}
	jobs, catalog, err := u.workload()
	if err != nil {
		return err
	}
	c, err := start(cluster.Options{
		Dir:        u.options.dir,
		Mode:       probe.Mode(u.options.mode),
		Kubernetes: u.options.kubernetes,
		Nodes:      machines.Nodes,
		Slices:     machines.Slices,
		Classes:    machines.Classes,
		Kueue:      u.options.kueue,
		Port:       u.options.port,
		Report:     u.say,
	})
	if err != nil {
		return err
	}
	defer c.Stop(context.WithoutCancel(ctx))
	ctx, cancel := c.Alive(ctx)
	defer cancel()
	return u.runJobs(ctx, c, machines, jobs, catalog)
}

// workload loads the objects to run, and rejects unsupported ones before anything is built or started.
func (u up) workload() (workload.Workload, liverun.Catalog, error) {
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		return workload.Workload{}, nil, err
	}
	paths := u.options.jobs
	if len(paths) == 0 {
		root, err := sourcetree.Root()
		if err != nil {
			return workload.Workload{}, nil, err
		}
		samples := "samples"
		if u.options.kueue {
			samples = "samples-kueue"
		}
		paths = []string{relative(filepath.Join(root, "manifests", samples))}
	}
	jobs, err := workload.Load(paths)
	if err != nil {
		return workload.Workload{}, nil, err
	}
	if err := u.checkQueues(jobs); err != nil {
		return workload.Workload{}, nil, err
	}
	return jobs, catalog, liverun.Check(jobs, catalog)
}

// checkQueues refuses objects of Kueue's for a cluster that will not have Kueue.
func (u up) checkQueues(jobs workload.Workload) error {
	for _, object := range jobs.Objects {
		if object.Object.GroupVersionKind().Group == "kueue.x-k8s.io" && !u.options.kueue {
			return &badinput.Error{
				Where: object.Where(), What: object.String() + " is for Kueue, which does not run", Mend: "add --kueue",
			}
		}
	}
	return nil
}

// relative shortens a path for people, if it lies below the working directory.
func relative(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(short) {
		return path
	}
	return short
}

func (u up) runJobs(
	ctx context.Context, c *cluster.Cluster, machines fleet.Fleet, jobs workload.Workload, catalog liverun.Catalog,
) error {
	u.say(fmt.Sprintf("submitting the TrainJobs (%d)", len(jobs.TrainJobs())))
	submitted, err := liverun.Submit(ctx, c, jobs, catalog, u.env.Clock)
	if err != nil {
		return orCause(ctx, err)
	}
	ledger, err := liverun.Run(ctx, submitted, liverun.Options{
		Client: c.Client, Dynamic: c.Dynamic, Clock: u.env.Clock, Patience: u.options.patience, Progress: u.say,
	})
	if err != nil {
		return orCause(ctx, err)
	}
	report := liverun.Report(machines, submitted, ledger, u.env.Clock.Now())
	report.Mode, report.Kubeconfig = u.options.mode, c.Kubeconfig()
	for _, component := range c.Components() {
		report.Components = append(report.Components, summary.Component(component))
	}
	if err := u.print(report); err != nil {
		return err
	}
	if u.options.hold {
		u.say(
			"holding the cluster; use: kubectl --kubeconfig " + relative(
				c.Kubeconfig(),
			) + " get trainjobs,jobsets,podgroups",
		)
		u.say("press Ctrl-C to end it")
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			return cause
		}
	}
	if !report.AllComplete() {
		return errUnplaced
	}
	return nil
}

// orCause prefers the reason for which ctx ended, such as a component's death, to the error that followed from it.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (u up) print(report summary.Report) error {
	if u.options.output == "json" {
		encoder := json.NewEncoder(u.env.Out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(report); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		return nil
	}
	file, isFile := u.env.Out.(*os.File)
	colored := isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" // no-color.org
	style := summary.Style{Color: colored}
	if err := summary.WriteTable(u.env.Out, report, style); err != nil {
		return err
	}
	return nil
}

// say prints progress, with the seconds since the start.
func (u up) say(line string) {
	_, _ = fmt.Fprintf(u.env.Err, "%4.0fs  %s\n", u.env.Clock.Since(u.started).Seconds(), line) // progress may be lost
}
