package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
)

func newFleet(env Environment) *cobra.Command {
	command := &cobra.Command{
		Use:   "fleet",
		Short: "List the built-in fleets, show what is in one, or write its nodes and devices to a file",
		Args:  usage(cobra.NoArgs),
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newFleetList(env), newFleetShow(env), newFleetGenerate(env))
	return command
}

func newFleetList(env Environment) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the built-in fleets",
		Args:  usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if err := checkForm(output); err != nil {
				return err
			}
			return listFleets(env, output)
		},
	}
	addForm(command, &output)
	return command
}

func newFleetShow(env Environment) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "show NAME|FILE",
		Short: "Show a fleet's levels, and its nodes with their capacity and devices",
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkForm(output); err != nil {
				return err
			}
			opened, err := fleet.Open(args[0])
			if err != nil {
				return err
			}
			survey, err := opened.Survey()
			if err != nil {
				return err
			}
			if output == "json" {
				return printJSON(env.Out, survey)
			}
			return printSurvey(env.Out, survey)
		},
	}
	addForm(command, &output)
	return command
}

func newFleetGenerate(env Environment) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "generate NAME|FILE",
		Short: "Write a fleet's Nodes, DeviceClasses and ResourceSlices as YAML",
		Long: "Write a fleet's Nodes, DeviceClasses and ResourceSlices as YAML, the same bytes every time.\n\n" +
			"The file may be changed and given to --fleet. Its fleet is called like the file.",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return generateFleet(env, args[0], output) },
	}
	command.Flags().StringVarP(&output, "output", "o", "", "the file; - is standard output")
	return command
}

func generateFleet(env Environment, name, output string) error {
	switch {
	case output == "":
		return &badinput.Error{
			Where: "-o",
			What:  "no file is named",
			Mend:  "add -o fleet.yaml, or -o - for standard output",
		}
	case strings.HasSuffix(output, ".gz"):
		return &badinput.Error{
			Where: "-o " + output,
			What:  "fleets are not read from compressed files",
			Mend:  "name a file that ends in .yaml",
		}
	}
	opened, err := fleet.Open(name)
	if err != nil {
		return err
	}
	if output == standardOutput {
		return fleet.Write(env.Out, opened)
	}
	err = capture.Publish(output, func(out io.Writer) error { return fleet.Write(out, opened) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Err, "%s: %d nodes, %d device classes, %d resource slices\n",
		output, len(opened.Nodes), len(opened.Classes), len(opened.Slices))
	if err != nil {
		return fmt.Errorf("printing what was written: %w", err)
	}
	return nil
}

func addForm(command *cobra.Command, output *string) {
	command.Flags().StringVarP(output, "output", "o", "text", "the answer's form: text or json")
}

func checkForm(output string) error {
	if output != "text" && output != "json" {
		return &badinput.Error{Where: "-o " + output, What: "there is no such form", Mend: "use text or json"}
	}
	return nil
}

// printJSON prints one object and nothing else.
func printJSON(out io.Writer, object any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	return nil
}
