package app_test

import (
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/app"
)

// The version is ours, and asks no cluster.
func TestCommand_PrintsItsVersion(t *testing.T) {
	command, clean := app.Command(t.Context())
	defer clean()
	var out strings.Builder
	command.SetOut(&out)
	command.SetArgs([]string{"--version"})
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "lockstep-scheduler ") || !strings.Contains(out.String(), "Kubernetes v") {
		t.Errorf("it prints %q", out.String())
	}
}
