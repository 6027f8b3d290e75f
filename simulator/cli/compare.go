package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/policy/openb"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/run/simulation"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/results"
)

// compareOptions are the flags of lockstep compare.
type compareOptions struct {
	replayOptions
	schedulers, seeds string
	force             bool
}

func newCompare(env Environment) *cobra.Command {
	var options compareOptions
	command := &cobra.Command{
		Use:   "compare (--fleet FLEET --trace TRACE --schedulers A,B,… | RESULTS RESULTS…)",
		Short: "Let schedulers play the same workload, and compare what came of it, seed by seed",
		Long: "Let schedulers play the same workload with the same seeds, and compare what came of it seed by seed, or compare\n" +
			"results that are there already. The others are compared with the first.\n\n" +
			"With --out, a run whose result is there, whole and of the same commit and configuration, is not played again.",
		Example: "  lockstep compare --fleet h100-64 --trace philly --schedulers lockstep,kueue-bestfit --seeds 1,2,3 --out out\n" +
			"  lockstep compare --fleet openb:nodes.csv --trace openb:pods.csv --schedulers best-fit,fgd --seeds 42,43,44\n" +
			"  lockstep compare out/lockstep-1 out/kueue-bestfit-1",
		RunE: func(command *cobra.Command, directories []string) error {
			if len(directories) > 0 {
				return options.compareResults(env, directories)
			}
			return options.run(command.Context(), env)
		},
	}
	options.add(command)
	flags := command.Flags()
	flags.StringVar(
		&options.schedulers,
		"schedulers",
		"lockstep,optimum",
		"who is compared, separated by commas: "+schedulers.Choices()+"; for openb "+strings.Join(
			openb.Policies(),
			", ",
		),
	)
	flags.StringVar(&options.seeds, "seeds", "0", "the seeds, separated by commas")
	flags.BoolVar(&options.options.Quick, "quick", false,
		fmt.Sprintf("play the most contended %d jobs in a row only", simulation.QuickJobs))
	flags.BoolVar(&options.force, "force", false, "compare what is not comparable, and say so")
	return command
}

func (o *compareOptions) run(ctx context.Context, env Environment) error {
	comparison := simulation.Comparison{
		Schedulers: split(o.schedulers), Engine: o.engine, Dir: o.out, Wall: env.Clock,
	}
	for _, text := range split(o.seeds) {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return &badinput.Error{
				Where: "--seeds " + o.seeds, What: fmt.Sprintf("%q is no seed", text),
				Mend: "write whole numbers, such as 1,2,3",
			}
		}
		comparison.Seeds = append(comparison.Seeds, seed)
	}
	input, err := o.open()
	if err != nil {
		return err
	}
	if err := input.Check(comparison); err != nil {
		return err
	}
	runs := len(comparison.Schedulers) * len(comparison.Seeds)
	ctx, shown, err := o.show(ctx, env, runs)
	if err != nil {
		return err
	}
	comparison.Progress = shown
	collectRarely()
	outcomes, err := input.Compare(ctx, comparison)
	closing := shown.Close()
	if err != nil {
		return o.partly(env, len(outcomes), err)
	}
	cards := simulation.Cards(outcomes)
	if err := o.print(env, cards, outcomes); err != nil {
		return err
	}
	if closing != nil {
		return closing
	}
	return verdict(cards)
}

// partly reports the progress of an interrupted comparison. It compares nothing: the results may cover only some seeds.
func (o *compareOptions) partly(env Environment, whole int, err error) error {
	if badinput.Is(err) || o.out == "" {
		return err
	}
	// If this cannot be said, err still is.
	_, _ = fmt.Fprintf(env.Err, "%d runs are whole in %s; the same command goes on from there\n", whole, o.out)
	return err
}

// compareResults compares earlier results.
func (o *compareOptions) compareResults(env Environment, directories []string) error {
	if err := checkForm(o.output); err != nil {
		return err
	}
	if o.names != (simulation.Names{}) {
		return &badinput.Error{
			What: "there are results, and inputs to be played",
			Mend: "leave out --fleet, --snapshot and --trace, or the results",
		}
	}
	cards := make([]measure.Scorecard, len(directories))
	for i, directory := range directories {
		result, err := results.Open(directory)
		if err != nil {
			return err
		}
		cards[i] = result.Card
	}
	if err := o.print(env, compare.Distinct(cards), nil); err != nil {
		return err
	}
	return verdict(cards)
}

// print compares and prints; outcomes are those of runs that were played now.
func (o *compareOptions) print(env Environment, cards []measure.Scorecard, outcomes []simulation.Outcome) error {
	pair := compare.Runs
	if o.force {
		pair = compare.Forced
	}
	table, err := pair(cards)
	if err != nil {
		return err
	}
	if table, err = simulation.WithPublished(table, cards, o.names.Trace); err != nil {
		return err
	}
	if outcomes != nil {
		table = simulation.WithBounds(table, outcomes)
	}
	if o.output == "json" {
		err = printJSON(env.Out, table)
	} else {
		err = table.WriteText(env.Out)
	}
	if err != nil || o.out == "" || outcomes == nil {
		return err
	}
	page, err := simulation.WriteComparison(o.out, table, outcomes)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Err, "page: %s\n", page)
	if err != nil {
		return fmt.Errorf("printing where the page is: %w", err)
	}
	return nil
}

// verdict is that of the first scheduler, which is the subject of the comparison: the others may break rules, and show
// that they do.
func verdict(cards []measure.Scorecard) error {
	for _, card := range cards {
		if card.Scheduler == cards[0].Scheduler && failed(card) {
			return errUnplaced
		}
	}
	return nil
}

// split splits a list at commas and spaces, and drops empty elements.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
