package cli

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
)

// builtinFleet is a built-in fleet in a list.
type builtinFleet struct {
	Name         string `json:"name"`
	Nodes        int    `json:"nodes"`
	Accelerators int64  `json:"accelerators"`
	About        string `json:"about"`
	Default      bool   `json:"default"`
}

func listFleets(env Environment, output string) error {
	var fleets []builtinFleet
	for _, name := range fleet.Names() {
		opened, err := fleet.Open(name)
		if err != nil {
			return err
		}
		survey, err := opened.Survey()
		if err != nil {
			return err
		}
		fleets = append(fleets, builtinFleet{
			Name: name, Nodes: survey.Nodes, Accelerators: survey.Accelerators, About: survey.About,
			Default: name == fleet.Default,
		})
	}
	if output == "json" {
		return printJSON(env.Out, map[string][]builtinFleet{"fleets": fleets})
	}
	rows := [][]string{{"NAME", "NODES", "ACCELERATORS", "WHAT"}}
	for _, one := range fleets {
		rows = append(
			rows,
			[]string{one.Name, strconv.Itoa(one.Nodes), strconv.FormatInt(one.Accelerators, 10), one.About},
		)
	}
	return printTable(env.Out, rows)
}

func printSurvey(out io.Writer, s fleet.Survey) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s: %s\n", s.Name, counted(s))
	if s.About != "" {
		text.WriteString(s.About + "\n")
	}
	text.WriteString("\n")
	if err := printTable(&text, levelRows(s)); err != nil {
		return err
	}
	text.WriteString("\n")
	if err := printTable(&text, groupRows(s)); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\ncapacity of all nodes: %s\n", capacityText(s.Capacity))
	if len(s.Classes) > 0 {
		fmt.Fprintf(&text, "device classes: %s\n", strings.Join(s.Classes, ", "))
	}
	if _, err := text.WriteTo(out); err != nil {
		return fmt.Errorf("printing the fleet: %w", err)
	}
	return nil
}

func counted(s fleet.Survey) string {
	text := fmt.Sprintf("%d nodes, %d accelerators", s.Nodes, s.Accelerators)
	if s.Cordoned > 0 {
		text += fmt.Sprintf(", %d cordoned", s.Cordoned)
	}
	return text
}

func levelRows(s fleet.Survey) [][]string {
	rows := [][]string{{"LEVEL", "LABEL", "DOMAINS", "NODES IN EACH", "WITHOUT"}}
	for _, level := range s.Levels {
		each := strconv.Itoa(level.Largest)
		if level.Smallest != level.Largest {
			each = fmt.Sprintf("%d to %d", level.Smallest, level.Largest)
		}
		rows = append(rows, []string{
			level.Name, level.Key, strconv.Itoa(level.Domains), each, strconv.Itoa(level.Unlabeled),
		})
	}
	return append(rows, []string{"node", "kubernetes.io/hostname", strconv.Itoa(s.Nodes), "1", "0"})
}

func groupRows(s fleet.Survey) [][]string {
	rows := [][]string{{"NODES", "NAMES", "CORDONED", "CAPACITY OF EACH", "DEVICES OF EACH"}}
	for _, group := range s.Groups {
		rows = append(rows, []string{
			strconv.Itoa(group.Nodes), group.Names, strconv.Itoa(group.Cordoned), capacityText(group.Capacity),
			devicesText(group.Devices),
		})
	}
	return rows
}

// capacityText omits the pod limit and disks.
func capacityText(capacity map[string]string) string {
	var said []string
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		if name != "pods" && name != "ephemeral-storage" {
			said = append(said, name+"="+capacity[name])
		}
	}
	return strings.Join(said, " ")
}

func devicesText(devices []fleet.SurveyedDevices) string {
	if len(devices) == 0 {
		return "-"
	}
	said := make([]string, len(devices))
	for i, one := range devices {
		said[i] = fmt.Sprintf("%d %s", one.Count, one.Driver)
		if one.Type != "" {
			said[i] = fmt.Sprintf("%d %s/%s", one.Count, one.Driver, one.Type)
		}
		if one.Occupied > 0 {
			said[i] += fmt.Sprintf(" (%d occupied)", one.Occupied)
		}
	}
	return strings.Join(said, ", ")
}

func printTable(out io.Writer, rows [][]string) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(table, strings.Join(row, "\t")); err != nil {
			return fmt.Errorf("printing a table: %w", err)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing a table: %w", err)
	}
	if _, err := text.WriteTo(out); err != nil {
		return fmt.Errorf("printing a table: %w", err)
	}
	return nil
}
