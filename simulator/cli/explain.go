package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-project/lockstep/simulator/explain"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// explainOptions are the flags of lockstep explain.
type explainOptions struct {
	namespace  string
	snapshot   string
	kubeconfig string
	withJob    string
	scheduler  string
	output     string
	// schedulerURL is the address of a scheduler on this machine.
	schedulerURL string
}

func newExplain(env Environment) *cobra.Command {
	var options explainOptions
	command := &cobra.Command{
		Use:   "explain (trainjob|podgroup) NAME | drain NODE|LEVEL=DOMAIN... | queue | reservations | --with-job FILE",
		Short: "Say why a job waits, until when, and what would change it",
		Long: "Say what the scheduler would decide about a live cluster or a snapshot, with the scheduler's own code. Nothing is\n" +
			"changed by it.\n\n" +
			"  lockstep explain trainjob pretrain          where it is, or why it waits, for whom, and until when\n" +
			"  lockstep explain queue                      who waits, in the queue's order\n" +
			"  lockstep explain reservations               places that the running scheduler reserves, and for whom\n" +
			"  lockstep explain --with-job job.yaml        what would become of a job if it were submitted now\n" +
			"  lockstep explain trainjob pretrain --with-job job.yaml    what that would change for another one\n" +
			"  lockstep explain drain rack=rack-3 node-7   whom maintenance would displace, and where they would go\n\n" +
			"What only filters know (volumes, host ports, rules between pods) is not looked at. The exit code is 0 if\n" +
			"everything evaluated runs or would start, 1 if any of it waits, 2 for input that cannot be used.",
		Args: usage(cobra.ArbitraryArgs),
		RunE: func(command *cobra.Command, words []string) error {
			if options.snapshot == "" {
				options.kubeconfig = orHeld(env, options.kubeconfig)
			}
			return runExplain(command.Context(), env, options, words)
		},
	}
	flags := command.Flags()
	flags.StringVarP(
		&options.namespace,
		"namespace",
		"n",
		"",
		"the namespace (default: that of the kubeconfig, or default); for reservations that of Lockstep (default: lockstep-system)",
	)
	flags.StringVar(&options.snapshot, "snapshot", "", "a file of lockstep snapshot, instead of a live cluster")
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", kubeconfigOrHeld)
	flags.StringVar(&options.withJob, "with-job", "",
		"a file with TrainJobs, and runtimes if they have their own, to be taken as submitted now")
	flags.StringVar(&options.scheduler, "scheduler-config", "",
		"the scheduler's configuration file (default: the shipped profile)")
	flags.StringVar(&options.schedulerURL, "scheduler-url", "",
		"for reservations: a scheduler's secure port on this machine (default: the one in the cluster that leads)")
	flags.StringVarP(&options.output, "output", "o", "text", "text or json")
	return command
}

// question is the question of the command line.
type question struct {
	// kind is trainjob, podgroup, drain, queue, or "" for the jobs of the file alone.
	kind  string
	words []string
}

// asked reads the command line.
func asked(words []string, options explainOptions) (question, error) {
	misused := func(what, mend string) (question, error) {
		return question{}, &badinput.Error{Where: "lockstep explain", What: what, Mend: mend}
	}
	if len(words) == 0 {
		if options.withJob == "" {
			return misused("nothing is asked", "name a trainjob, or add --with-job FILE; see lockstep explain --help")
		}
		return question{}, nil
	}
	kind, name, slashed := strings.Cut(words[0], "/")
	rest := words[1:]
	if slashed {
		rest = append([]string{name}, rest...)
	}
	kind = strings.TrimSuffix(kind, "s")
	switch kind {
	case "trainjob", "podgroup":
		if len(rest) != 1 {
			return misused(
				fmt.Sprintf("%s wants one name, and %d are given", kind, len(rest)),
				"write lockstep explain "+kind+" NAME",
			)
		}
	case "drain":
		if len(rest) == 0 {
			return misused("no node is named", "write lockstep explain drain NODE..., or LEVEL=DOMAIN")
		}
	case "queue":
		if len(rest) > 0 {
			return misused("queue wants no name", "write lockstep explain queue")
		}
	case "reservation":
		if len(rest) > 0 {
			return misused("reservations wants no name", "write lockstep explain reservations")
		}
	default:
		return misused(
			fmt.Sprintf("%q is nothing that can be explained", words[0]),
			"use trainjob, podgroup, drain, queue or reservations",
		)
	}
	return question{kind, rest}, nil
}

func runExplain(ctx context.Context, env Environment, options explainOptions, words []string) error {
	q, err := asked(words, options)
	if err != nil {
		return err
	}
	if options.output != "text" && options.output != "json" {
		return &badinput.Error{Where: "-o " + options.output, What: "there is no such form", Mend: "use text or json"}
	}
	if q.kind == "reservation" {
		return explainReservations(ctx, env, options)
	}
	scene, err := openScene(ctx, env, options)
	if err != nil {
		return err
	}
	answer, err := scene.answer(ctx, q)
	if err != nil {
		return err
	}
	if options.output == "json" {
		text, err := json.Marshal(answer)
		if err != nil {
			return fmt.Errorf("printing the answer: %w", err)
		}
		if _, err := fmt.Fprintln(env.Out, string(text)); err != nil {
			return fmt.Errorf("printing the answer: %w", err)
		}
	} else if err := explain.WriteText(env.Out, answer); err != nil {
		return err
	}
	if !answer.Starts() {
		return errUnplaced
	}
	return nil
}
