package docs_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/scheduler/app"
	"github.com/lockstep-project/lockstep/simulator/cli"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
	"github.com/lockstep-project/lockstep/topology"
)

// TestReference holds the pages of docs/generated to the code that they are made of.
func TestReference(t *testing.T) {
	for name, write := range map[string]func(*testing.T) string{
		"flags": flags, "exit-codes": exitCodes, "configuration": configuration, "crds": crds, "labels": labels, "metrics": metricsPage,
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.TrimRight(write(t), "\n") + "\n"
			page.Page{File: "docs/generated/" + name + ".md", Write: *rewrite, Mend: mend}.Is(t, text)
		})
	}
}

// generated opens a page.
func generated(title, from, introduction string) string {
	return fmt.Sprintf("# %s\n\n<!-- Generated from %s: %s -->\n\n%s\n\n", title, from, mend, introduction)
}

// help returns the help text of a lockstep command.
func help(t *testing.T, words ...string) string {
	t.Helper()
	var out bytes.Buffer
	code := cli.Run(
		t.Context(),
		append(words, "--help"),
		cli.Environment{Out: &out, Err: &out, Clock: clock.RealClock{}},
	)
	if code != 0 {
		t.Fatalf("lockstep %v --help: exit %d\n%s", words, code, out.String())
	}
	return out.String()
}

// commands returns the commands below one of lockstep's, each with the words that lead to it.
func commands(t *testing.T, words ...string) [][]string {
	t.Helper()
	_, rest, _ := strings.Cut(help(t, words...), "Available Commands:\n")
	list, _, _ := strings.Cut(rest, "\n\n")
	var all [][]string
	for line := range strings.Lines(list) {
		name := strings.Fields(line)[0]
		if name == "help" || name == "completion" { // they are cobra's
			continue
		}
		path := append(append([]string{}, words...), name)
		all = append(append(all, path), commands(t, path...)...)
	}
	return all
}

func flags(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(generated("Flags", "the commands' own help", "What each command says with `--help`."))
	block := func(title, text string) {
		_, _ = fmt.Fprintf(&out, "## %s\n\n```text\n%s\n```\n\n", title, strings.Trim(trimmed(text), "\n"))
	}
	block("lockstep", help(t))
	for _, words := range commands(t) {
		block("lockstep "+strings.Join(words, " "), help(t, words...))
	}
	var usage bytes.Buffer
	if _, err := config.Parse([]string{"--help"}, &usage); err == nil || usage.Len() == 0 {
		t.Fatalf("lockstep-controller prints no help: %v", err)
	}
	block("lockstep-controller", usage.String())
	scheduler, clean := app.Command(context.WithoutCancel(t.Context()))
	defer clean()
	out.WriteString("## lockstep-scheduler\n\nThe flags of kube-scheduler, and:\n\n")
	gangs := scheduler.Flags().Lookup("gang-api")
	if gangs == nil {
		t.Fatal("lockstep-scheduler has no flag --gang-api")
	}
	_, _ = fmt.Fprintf(&out, "* `--gang-api`: %s\n", gangs.Usage)
	return out.String()
}

// trimmed returns a text without spaces at the ends of its lines.
func trimmed(text string) string { return regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAllString(text, "") }

func exitCodes(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(generated(
		"Exit codes",
		"the commands' help and the code's comments",
		"Exit code 2 says that the input, the configuration or the cluster cannot be used, in one line that names what, where, and how to mend it.",
	))
	out.WriteString("## lockstep\n\n| command | exit code |\n|---|---|\n")
	_, contract, _ := strings.Cut(packageComment(t, "simulator/cli"), "The exit codes are a contract: ")
	_, _ = fmt.Fprintf(&out, "| every command | %s |\n", cell(contract))
	said := regexp.MustCompile(`(?:[A-Z][^.A-Z]*exit code|Exit code)[^.]*\.`)
	for _, words := range commands(t) {
		text := strings.Join(strings.Fields(help(t, words...)), " ")
		if found := said.FindString(text); found != "" {
			_, _ = fmt.Fprintf(
				&out,
				"| `lockstep %s` | %s |\n",
				strings.Join(words, " "),
				cell(strings.TrimSpace(found)),
			)
		}
	}
	out.WriteString("\n## Services\n\n| program | exit code |\n|---|---|\n")
	_, _ = fmt.Fprintf(
		&out,
		"| `lockstep-controller` | %s |\n",
		cell(explained(t, "controller/cmd/lockstep-controller", "run")),
	)
	_, _ = fmt.Fprintf(&out, "| `lockstep-scheduler` | %s |\n", cell(explained(t, "scheduler/app", "ExitCode")))
	out.WriteString(
		"\n## Ranks\n\nAnnotation `lockstep.dev/exit-codes`, such as `3=fatal, 137=other-node`, maps exit codes of ranks to:\n\n" +
			"| action | meaning |\n|---|---|\n",
	)
	for _, action := range []struct {
		name  string
		value topology.ExitAction
	}{
		{"ExitRetry", topology.ExitRetry}, {"ExitFatal", topology.ExitFatal}, {"ExitOtherNode", topology.ExitOtherNode},
	} {
		_, _ = fmt.Fprintf(&out, "| `%s` | %s |\n", action.value, cell(explained(t, "topology", action.name)))
	}
	return strings.ReplaceAll(out.String(), "ExitRetry", "`"+string(topology.ExitRetry)+"`")
}

// explained returns the comment of a function or constant without its name.
func explained(t *testing.T, folder, name string) string {
	t.Helper()
	return strings.TrimPrefix(documented(t, folder, name), name+" ")
}

// packageComment returns the comment of a package on one line.
func packageComment(t *testing.T, folder string) string {
	t.Helper()
	var text strings.Builder
	for _, file := range parsed(t, folder) {
		text.WriteString(sentences(file.Doc))
	}
	return text.String()
}
