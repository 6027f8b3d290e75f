package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lockstep-project/lockstep/controller"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/trainjob"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// adoptOptions are the flags of lockstep adopt.
type adoptOptions struct {
	dryRun     bool
	back       bool
	namespace  string
	kubeconfig string
	output     string
}

func newAdopt(env Environment) *cobra.Command {
	var options adoptOptions
	command := &cobra.Command{
		Use:   "adopt --dry-run [flags] [-- CONTROLLER FLAGS]",
		Short: "List what changes for each TrainJob if Lockstep takes over from Kubeflow Trainer, or gives back",
		Long: "List what changes for each TrainJob if Lockstep takes over from Kubeflow Trainer, or gives back. The controller's own\n" +
			"planner answers, with dry runs of the API server; nothing is changed. Flags after -- are lockstep-controller's.\n\n" +
			"  lockstep adopt --dry-run -- --gang-default=on    before lockstep-controller starts with that flag\n" +
			"  lockstep adopt --dry-run --back                  before Kubeflow Trainer starts again\n\n" +
			"  keep       the JobSet runs and is not touched; fields listed differ after a suspension\n" +
			"  unchanged  the JobSet is suspended, and as it would be rendered\n" +
			"  patch      the JobSet is suspended, and the fields listed change in it\n" +
			"  replace    the JobSet is suspended, and has to be deleted and created again for the fields listed\n" +
			"  create     there is no JobSet yet\n" +
			"  none       the job has ended\n" +
			"  skip       another controller has the job\n" +
			"  blocked    a user has to act first, or the job does not start\n\n" +
			"The exit code is 0 if no job is blocked, 1 if one is, 2 for input that cannot be used.",
		Args: usage(func(command *cobra.Command, args []string) error {
			if at := command.ArgsLenAtDash(); at != 0 && len(args) > 0 {
				return fmt.Errorf("unexpected argument %q", args[0])
			}
			return nil
		}),
		RunE: func(command *cobra.Command, flags []string) error {
			return runAdopt(command.Context(), env, options, flags)
		},
	}
	flags := command.Flags()
	flags.BoolVar(
		&options.dryRun,
		"dry-run",
		false,
		"required: list only; lockstep-controller --take-over is what takes over",
	)
	flags.BoolVar(&options.back, "back", false, "list what has to be done before Kubeflow Trainer gets the jobs back")
	flags.StringVarP(&options.namespace, "namespace", "n", "", "the namespace (default: all)")
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", "the cluster (default $KUBECONFIG, then ~/.kube/config)")
	flags.StringVarP(&options.output, "output", "o", "text", "text or json")
	return command
}

func runAdopt(ctx context.Context, env Environment, options adoptOptions, flags []string) error {
	if !options.dryRun {
		return &badinput.Error{
			Where: "lockstep adopt", What: "--dry-run is missing",
			Mend: "add it; to take over, start lockstep-controller with --take-over=kubeflow-system (docs/takeover.md)",
		}
	}
	if options.output != "text" && options.output != "json" {
		return &badinput.Error{Where: "-o " + options.output, What: "there is no such form", Mend: "use text or json"}
	}
	of, err := config.Parse(flags, env.Out)
	if errors.Is(err, config.ErrHelp) {
		return nil
	}
	if err != nil {
		return &badinput.Error{Where: "lockstep adopt --", What: err.Error(), Mend: "see lockstep-controller --help"}
	}
	cluster, err := clientConfig(cmp.Or(options.kubeconfig, of.Kubeconfig))
	if err != nil {
		return err
	}
	look := controller.PreviewAdoption
	if options.back {
		look = controller.PreviewReturn
	}
	jobs, err := look(ctx, cluster, of, options.namespace)
	switch {
	case meta.IsNoMatchError(err):
		return &badinput.Error{
			Where: "the cluster",
			What:  "it serves no TrainJobs or no JobSets: " + err.Error(),
			Mend:  "install them first",
		}
	case errors.Is(err, gangapi.ErrNoAPI):
		return &badinput.Error{Where: "the cluster", What: err.Error()}
	case err != nil:
		return err
	}
	closing := ""
	switch {
	case !options.back:
	case options.namespace != "":
		closing = "before Lockstep is stopped, look at all namespaces: lockstep adopt --dry-run --back"
	default:
		closing = "once Lockstep is stopped, delete its state: kubectl delete frozentrainjobs -n " + of.Namespace + " --all"
	}
	return printAdoption(env.Out, jobs, options.output, closing)
}

// printAdoption prints the answer, as text with a closing line. The error is errUnplaced if a job is blocked.
func printAdoption(out io.Writer, jobs []controller.AdoptedJob, form, closing string) error {
	isBlocked := slices.ContainsFunc(
		jobs,
		func(job controller.AdoptedJob) bool { return job.Action == trainjob.ActionBlocked },
	)
	var text bytes.Buffer
	if form == "json" {
		encoder := json.NewEncoder(&text)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(jobs); err != nil {
			return fmt.Errorf("printing the jobs: %w", err)
		}
	} else if err := writeAdoption(&text, jobs); err != nil {
		return err
	}
	if form != "json" && closing != "" && !isBlocked {
		text.WriteString(closing + "\n")
	}
	if _, err := text.WriteTo(out); err != nil {
		return fmt.Errorf("printing the jobs: %w", err)
	}
	if isBlocked {
		return errUnplaced
	}
	return nil
}

// writeAdoption writes a table with a line for each field that differs, and the number of jobs for each action.
func writeAdoption(out io.Writer, jobs []controller.AdoptedJob) error {
	const shown = 6                                    // fields of a job; the others are in -o json
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0) //nolint:mnd // the gap of kubectl's tables
	counts := map[trainjob.Action]int{}
	lines := []string{"NAMESPACE\tTRAINJOB\tACTION\tWHAT"}
	for _, job := range jobs {
		counts[job.Action]++
		what := slices.Clone(job.Fields)
		if hidden := len(what) - shown; hidden > 0 {
			what = append(what[:shown:shown], fmt.Sprintf("and %d more (-o json)", hidden))
		}
		if job.Reason != "" {
			what = append(what, strings.Join(strings.Fields(job.Reason), " "))
		}
		if len(what) == 0 {
			what = []string{""}
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s", job.Namespace, job.Name, job.Action, what[0]))
		for _, more := range what[1:] {
			lines = append(lines, "\t\t\t"+more)
		}
	}
	if len(jobs) == 0 {
		lines = nil
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(table, line); err != nil {
			return fmt.Errorf("printing the jobs: %w", err)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the jobs: %w", err)
	}
	if _, err := fmt.Fprintln(out, countActions(counts, len(jobs))); err != nil {
		return fmt.Errorf("printing the jobs: %w", err)
	}
	return nil
}

// countActions returns the number of jobs for each action, those that need a user first.
func countActions(counts map[trainjob.Action]int, jobs int) string {
	if jobs == 0 {
		return "no TrainJobs"
	}
	var parts []string
	for _, action := range []trainjob.Action{
		trainjob.ActionBlocked, trainjob.ActionReplace, trainjob.ActionPatch, trainjob.ActionCreate, trainjob.ActionUnchanged,
		trainjob.ActionKeep, trainjob.ActionNone, trainjob.ActionSkip,
	} {
		if n := counts[action]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, action))
		}
	}
	return "TrainJobs: " + strings.Join(parts, ", ")
}
