// Command bench-controller measures the cost of a thousand TrainJobs at once for lockstep-controller, on embedded
// clusters.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/bench/loadtest"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

func main() {
	log.SetLogger(klog.NewKlogr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// bench is one run of the command.
type bench struct {
	dir      string
	jobs     int
	largest  int
	restarts []int
	crowd    int
	out      io.Writer
	report   loadtest.Report
}

func run(ctx context.Context, args []string, out io.Writer) error {
	b := bench{out: out, report: loadtest.Report{Commit: commit(ctx), Processors: runtime.NumCPU(), Load: load()}}
	flags := flag.NewFlagSet("bench-controller", flag.ContinueOnError)
	flags.StringVar(&b.dir, "dir", "out/bench", "folder that gets the results, and the clusters' state")
	flags.IntVar(&b.jobs, "jobs", 1000, "how many jobs are created at once")
	flags.IntVar(
		&b.largest,
		"largest",
		4000,
		"how many jobs exist when a reconcile is measured last; 0 for no such measurement",
	)
	restarts := flags.String(
		"restarts",
		"1000,4000,10000",
		"with how many suspended jobs the controller is restarted, in rising order, which fails if it is not ready within 10 s or calls\n"+
			"the API server more than once for each; empty for no such measurement",
	)
	flags.IntVar(&b.crowd, "crowd", 10000,
		"how many jobs one tenant has created when another creates his first; 0 for no such measurement")
	gangs := flags.String("gangs", "off,on", "with which gangs jobs are created at once; empty for no such measurement")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	if err := errors.Join(b.check(*gangs), b.readRestarts(*restarts)); err != nil {
		return err
	}
	var failed error
	for gang := range strings.SplitSeq(*gangs, ",") {
		for _, suspend := range []bool{true, false} {
			if gang == "" {
				continue
			}
			order := loadtest.Order{Namespace: corev1.NamespaceDefault, Count: b.jobs, Gang: gang, Suspend: suspend}
			failed = errors.Join(failed, b.rush(ctx, order))
		}
	}
	if b.largest > 0 {
		failed = errors.Join(failed, b.costs(ctx))
	}
	if len(b.restarts) > 0 {
		failed = errors.Join(failed, b.restart(ctx))
	}
	if b.crowd > 0 {
		failed = errors.Join(failed, b.behind(ctx))
	}
	return errors.Join(failed, b.report.Write(out), b.save())
}

// check refuses flags with which there is nothing to measure.
func (b *bench) check(gangs string) error {
	for gang := range strings.SplitSeq(gangs, ",") {
		if gangs != "" && gang != "on" && gang != "off" {
			return fmt.Errorf("-gangs=%s: must be on, off, both with a comma between, or empty", gangs)
		}
	}
	if b.jobs < 1 {
		return fmt.Errorf("-jobs=%d: must be at least 1", b.jobs)
	}
	if b.largest != 0 && b.largest < shares {
		return fmt.Errorf("-largest=%d: must be at least %d, or 0", b.largest, shares)
	}
	return nil
}

// readRestarts parses the numbers of jobs at which the controller is restarted.
func (b *bench) readRestarts(text string) error {
	last := 0
	for part := range strings.SplitSeq(text, ",") {
		if text == "" {
			return nil
		}
		jobs, err := strconv.Atoi(part)
		if err != nil || jobs <= last+1 {
			return fmt.Errorf("-restarts=%s: must be rising numbers with commas between them, or empty", text)
		}
		b.restarts, last = append(b.restarts, jobs), jobs
	}
	return nil
}

func (b *bench) rush(ctx context.Context, order loadtest.Order) error {
	return b.onCluster(ctx, 10*time.Minute, func(ctx context.Context, field loadtest.Field) error {
		b.say(fmt.Sprintf("%d jobs, gang %s, suspended %t", order.Count, order.Gang, order.Suspend))
		result, err := field.Run(ctx, order)
		if err == nil {
			b.report.Rushes = append(b.report.Rushes, result)
		}
		return err
	})
}

// shares is the divisor of the jobs that exist when a reconcile is measured first.
const shares = 16

// costs measures with a sixteenth of the jobs, a quarter, and all.
func (b *bench) costs(ctx context.Context) error {
	return b.onCluster(ctx, 10*time.Minute, func(ctx context.Context, field loadtest.Field) error {
		const rounds = 4
		var err error
		smallest := b.largest / shares
		b.report.Costs, err = field.Costs(
			ctx,
			loadtest.Order{Namespace: corev1.NamespaceDefault, Gang: "on", Suspend: true},
			[]int{smallest, b.largest / 4, b.largest},
			smallest,
			rounds,
		)
		return err
	})
}

// restart measures restarts of the controller, on one cluster that grows. It fails if one takes too much.
func (b *bench) restart(ctx context.Context) error {
	return b.onCluster(ctx, time.Hour, func(ctx context.Context, field loadtest.Field) error {
		var err error
		order := loadtest.Order{Namespace: corev1.NamespaceDefault, Gang: "on", Suspend: true}
		b.report.Restarts, err = field.Restarts(ctx, order, b.restarts)
		return err
	})
}

// behind measures the wait of tenants behind a crowd of another's jobs. It fails if one waits too long.
func (b *bench) behind(ctx context.Context) error {
	const neighbors = 5
	return b.onCluster(ctx, 30*time.Minute, func(ctx context.Context, field loadtest.Field) error {
		order := loadtest.Order{Namespace: corev1.NamespaceDefault, Count: b.crowd, Gang: "on", Suspend: true}
		crowd, err := field.Behind(ctx, order, neighbors)
		if err != nil {
			return err
		}
		b.report.Crowds = append(b.report.Crowds, crowd)
		return crowd.Judge()
	})
}

// onCluster brings up a cluster of its own for each measurement: nothing of the one before is left, and that is sooner
// done than to delete it.
func (b *bench) onCluster(
	ctx context.Context, patience time.Duration, measure func(context.Context, loadtest.Field) error,
) error {
	machines, err := fleet.Open(fleet.Default)
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(
			b.dir,
			"bench-controller-cluster",
		),
		Mode:   probe.Full,
		Nodes:  machines.Nodes,
		Report: func(string) {},
	})
	if err != nil {
		return err
	}
	defer c.Stop(context.WithoutCancel(ctx))
	ctx, cancel := c.Alive(ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if _, err := c.Create(ctx, loadtest.Runtime()); err != nil {
		return err
	}
	field, err := b.field(c)
	if err != nil {
		return err
	}
	return measure(ctx, field)
}

func (b *bench) field(c *cluster.Cluster) (loadtest.Field, error) {
	hurried := rest.CopyConfig(c.Admin)
	hurried.QPS, hurried.Burst = loadtest.QueriesPerSecond, loadtest.QueriesPerSecond
	changing, err := dynamic.NewForConfig(hurried)
	if err != nil {
		return loadtest.Field{}, fmt.Errorf("making a client: %w", err)
	}
	watching, err := metadata.NewForConfig(c.Admin)
	if err != nil {
		return loadtest.Field{}, fmt.Errorf("making a client: %w", err)
	}
	client, err := rest.HTTPClientFor(c.Admin)
	if err != nil {
		return loadtest.Field{}, fmt.Errorf("making a client: %w", err)
	}
	return loadtest.Field{
		Dynamic:  changing,
		Metadata: watching,
		Usage:    loadtest.Scrape(client, c.ControllerMetrics()),
		Replace:  c.RestartController,
		Clock:    clock.RealClock{},
		Progress: b.say,
		Pause:    2 * time.Second,
	}, nil
}

func (b *bench) say(line string) { _, _ = fmt.Fprintln(b.out, line) }

func (b *bench) save() error {
	content, err := json.MarshalIndent(b.report, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	file := filepath.Join(b.dir, "controller.json")
	if err := os.WriteFile(file, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// commit returns the measured commit, marked if there are uncommitted changes.
func commit(ctx context.Context) string {
	described, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(described))
}

// load is the machine's load averages; unknown where there is no /proc.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(content))[:3], " ")
}
