package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/app"
)

// A wrong configuration stops the start before any cluster is asked, with the file and the path of the field.
func TestCommand_WrongConfigurationStopsTheStart(t *testing.T) {
	const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	args := func(plugin, args string) string {
		return head + `
profiles:
- schedulerName: lockstep-scheduler
  pluginConfig:
  - name: DefaultPreemption
  - name: ` + plugin + `
    args: {apiVersion: scheduler.lockstep.dev/v1alpha1, kind: ` + plugin + `Args, ` + args + "}\n"
	}
	const at = "profiles[0].pluginConfig[1].args: "
	for name, test := range map[string]struct{ content, want string }{
		"no YAML":           {"profiles: [", "config.yaml: "},
		"another kind":      {"apiVersion: v1\nkind: Pod\n", `"Pod"`},
		"an unknown field":  {head + "percentageOfNodes: 3\n", `unknown field "percentageOfNodes"`},
		"a value":           {head + "percentageOfNodesToScore: 300\n", "percentageOfNodesToScore: Invalid value: 300"},
		"too short a grace": {args("GangPermit", "grace: 10ms"), at + `GangPermit: not valid: grace: Invalid value: "10ms"`},
		"no duration":       {args("GangPermit", "grace: soon"), at + `GangPermit: reading the arguments: `},
		"an unknown arg":    {args("GangPlacement", "level: [rack]"), at + `GangPlacement: reading the arguments: `},
		"a level twice": {
			args("GangPlacement", "levels: [{key: a}, {key: a}]"),
			at + `GangPlacement: not valid: levels[1].key: Duplicate value: "a"`,
		},
		"in-tree preemption beside ours": {
			head + "profiles:\n- schedulerName: lockstep-scheduler\n  plugins: {multiPoint: {enabled: [{name: GangPlacement}]}}\n",
			"profiles[0].plugins: DefaultPreemption does not mark its dry runs",
		},
		"a version": {
			strings.ReplaceAll(args("GangPermit", "grace: 10s"), "v1alpha1", "v7"),
			at + `GangPermit: not valid: apiVersion: Unsupported value`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			command, clean := app.Command(t.Context())
			defer clean()
			command.SetArgs([]string{"--config", file})
			command.SilenceErrors, command.SilenceUsage = true, true
			var stderr bytes.Buffer
			if code := app.ExitCode(command.Execute(), &stderr); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if line := stderr.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, test.want) {
				t.Errorf("printed %q, want it to say %q", line, test.want)
			}
		})
	}
}
