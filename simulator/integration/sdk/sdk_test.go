package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// row is a call of the SDK, and its result.
type row struct {
	Call, Expected, Result string
	Seconds                float64
	// Unexpected calls raised an error that they should not have raised.
	Unexpected bool
}

// played holds the output of the suite.
type played struct {
	Version string
	Rows    []row
	// Missing is the part of the SDK's public API that no scene uses.
	Missing []string
	Figures map[string]string
}

// TestSDK_EveryCall plays all calls with each release of the SDK.
func TestSDK_EveryCall(t *testing.T) {
	for i, environment := range environments {
		t.Run(filepath.Base(environment), func(t *testing.T) {
			namespace := "sdk-" + strings.NewReplacer(".", "-", "/", "-").Replace(filepath.Base(environment))
			kubeconfig := newUser(t, namespace)
			keepKubelet(t, namespace)
			answer := play(t, environment, namespace, kubeconfig)
			judge(t, answer)
			if i == 0 && !t.Failed() {
				comparePage(t, answer)
			}
		})
	}
}

// judge fails the test for each call whose result is not the expected one, and for calls that the suite leaves out.
func judge(t *testing.T, answer played) {
	t.Helper()
	for _, r := range answer.Rows {
		if r.Result != r.Expected {
			t.Errorf("%s: %q, want %q", r.Call, r.Result, r.Expected)
		}
	}
	t.Log(summary(answer))
	for _, name := range answer.Missing {
		t.Errorf(
			"no scene uses %s, which is new in SDK %s; add one to simulator/integration/sdk/suite",
			name,
			answer.Version,
		)
	}
}

// play runs the suite in a namespace.
func play(t *testing.T, environment, namespace, kubeconfig string) played {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "answer.json")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	python := filepath.Join(root, environment, "bin", "python")
	command := exec.CommandContext(ctx, python, "-m", "suite", namespace, file)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PYTHONDONTWRITEBYTECODE=1")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v", environment, errors.Join(err, ctx.Err()))
	}
	var answer played
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		t.Fatal(fmt.Errorf("reading the suite's answer: %w", err))
	}
	return answer
}
