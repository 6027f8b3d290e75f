package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/migrate"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/movein"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

// standardInput is the file name that means standard input.
const standardInput = "-"

func newMigrate(env Environment) *cobra.Command {
	var options movein.Options
	command := &cobra.Command{
		Use:   "migrate FILE...",
		Short: "Change manifests of older controllers and of other schedulers: the result on stdout, what changed on stderr",
		Long: "Change manifests of older controllers and of other schedulers.\n\n" +
			"Reads objects (- is standard input), and prints what to apply instead; objects of other kinds pass through.\n\n" +
			"TrainJobs and runtimes of Kubeflow Trainer 2.0 and 2.1, PyTorchJobs, JAXJobs, XGBoostJobs and MPIJobs become TrainJobs:\n" +
			"a job of the training operator or the MPI operator a TrainingRuntime called <job>-runtime and a TrainJob.\n\n" +
			"Jobs and PodGroups of Volcano, PodGroups of KAI and of scheduler-plugins, RayClusters, RayJobs, RayServices, and objects of any\n" +
			"kind with labels, annotations or a schedulerName of Volcano, KAI, scheduler-plugins or YuniKorn stay what they are, as\n" +
			"Lockstep schedules them.\n\n" +
			"Each line on stderr names a field, and what does its work now. In manifests of other schedulers it begins with a verdict:\n" +
			"stays, changed, removed, unread (nothing in Lockstep reads it), or to do (before the manifest works). The last line has the\n" +
			"values of the chart by which Lockstep reads the gangs, if they need any.",
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, files []string) error { return runMigrate(env, files, options) },
	}
	command.Flags().StringToStringVar(&options.Levels, "tier", nil,
		"the level of a tier of Volcano's HyperNodes, as TIER=LEVEL: a level of lockstep doctor, or the key of a node label")
	command.Flags().BoolVar(&options.KeepMPIJobs, "keep-mpijobs", false,
		"leave MPIJobs (v2beta1) to the MPI operator, which marks their gangs with --gang-scheduling=lockstep-scheduler")
	return command
}

// runMigrate prints nothing but the error if any object of any file cannot be migrated.
func runMigrate(env Environment, files []string, options movein.Options) error {
	for tier, level := range options.Levels {
		if faults := validation.IsQualifiedName(level); len(faults) > 0 || tier == "" {
			return &badinput.Error{
				Where: "--tier " + tier + "=" + level, What: "it names no level",
				Mend: "write TIER=LEVEL, such as --tier 2=rack",
			}
		}
	}
	var documents []migrate.Document
	for _, file := range files {
		found, err := readForMigration(env.In, file)
		if err != nil {
			return err
		}
		documents = append(documents, found...)
	}
	moved, err := movein.Documents(documents, options)
	if err != nil {
		return refused(err)
	}
	result, err := migrate.Documents(moved.Documents)
	if err != nil {
		return refused(err)
	}
	if err := printMigrated(env.Out, result.Objects); err != nil {
		return err
	}
	return printNotes(env.Err, inOrder(documents, slices.Concat(moved.Notes, result.Notes)), moved.Rows)
}

// refused is an object that cannot be migrated, as the command line says it.
func refused(err error) error {
	if bad, isBad := errors.AsType[*migrate.InputError](err); isBad {
		return badinput.At(bad.File, bad.Line, bad.What, bad.Mend)
	}
	return err
}

func printMigrated(to io.Writer, objects []map[string]any) error {
	var out bytes.Buffer
	for i, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("printing the migrated objects: %w", err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	if _, err := out.WriteTo(to); err != nil {
		return fmt.Errorf("printing the migrated objects: %w", err)
	}
	return nil
}

// inOrder sorts notes by the files, in the order in which they were read, and by line.
func inOrder(documents []migrate.Document, notes []migrate.Note) []migrate.Note {
	order := map[string]int{}
	for i, document := range slices.Backward(documents) {
		order[document.File] = i
	}
	slices.SortStableFunc(notes, func(a, b migrate.Note) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line))
	})
	return notes
}

// printNotes prints the notes, and then the values of the chart that the gangs need, as helm takes them.
func printNotes(to io.Writer, notes []migrate.Note, rows []dialects.Row) error {
	var out bytes.Buffer
	for _, note := range notes {
		fmt.Fprintln(&out, note)
	}
	if len(rows) > 0 {
		out.WriteString("values of the chart: --set-json 'scheduler.pluginArgs.GangPlacement.dialects=")
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(rows); err != nil {
			return fmt.Errorf("printing the chart's values: %w", err)
		}
		out.Truncate(out.Len() - 1) // the end of the line
		out.WriteString("'\n")
	}
	if _, err := out.WriteTo(to); err != nil {
		return fmt.Errorf("printing the notes: %w", err)
	}
	return nil
}

// readForMigration reads the objects of a file, those of Lists one by one.
func readForMigration(in io.Reader, file string) ([]migrate.Document, error) {
	read, err := readFile(in, file)
	if err != nil {
		return nil, err
	}
	var documents []migrate.Document
	for _, document := range read {
		items, err := document.Items()
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			documents = append(documents, migrate.Document{File: item.File, Content: item.Content, Line: item.LineOf})
		}
	}
	return documents, nil
}

func readFile(in io.Reader, file string) ([]yamlfile.Document, error) {
	if file != standardInput {
		return yamlfile.ReadFile(file)
	}
	if in == nil {
		return nil, &badinput.Error{Where: standardInput, What: "there is no standard input", Mend: "name a file"}
	}
	content, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return yamlfile.Read("(standard input)", content)
}
