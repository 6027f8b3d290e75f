package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/migrate"
	"github.com/lockstep-project/lockstep/simulator/badinput"
	"github.com/lockstep-project/lockstep/simulator/yamlfile"
)

// standardInput is the file name that means standard input.
const standardInput = "-"

func newMigrate(env Environment) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate FILE...",
		Short: "Make TrainJobs and RuntimePatches of older manifests: the result on stdout, what changed on stderr",
		Long: "Make TrainJobs and RuntimePatches of older manifests.\n\n" +
			"Reads TrainJobs and runtimes of Kubeflow Trainer 2.0 and 2.1, PyTorchJobs, JAXJobs, XGBoostJobs and MPIJobs\n" +
			"(- is standard input), and prints what to apply instead; objects of other kinds pass through. A job of the\n" +
			"training operator or the MPI operator becomes a TrainingRuntime called <job>-runtime and a TrainJob.\n" +
			"Each line on stderr names a field that is not there as it was, and what does its work now.",
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, files []string) error { return runMigrate(env, files) },
	}
}

// runMigrate prints nothing but the error if any object of any file cannot be migrated.
func runMigrate(env Environment, files []string) error {
	var documents []migrate.Document
	for _, file := range files {
		found, err := readForMigration(env.In, file)
		if err != nil {
			return err
		}
		documents = append(documents, found...)
	}
	result, err := migrate.Documents(documents)
	if bad, isBad := errors.AsType[*migrate.InputError](err); isBad {
		return badinput.At(bad.File, bad.Line, bad.What, bad.Mend)
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for i, object := range result.Objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("printing the migrated objects: %w", err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	if _, err := out.WriteTo(env.Out); err != nil {
		return fmt.Errorf("printing the migrated objects: %w", err)
	}
	for _, note := range result.Notes {
		if _, err := fmt.Fprintln(env.Err, note); err != nil {
			return fmt.Errorf("printing the notes: %w", err)
		}
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
