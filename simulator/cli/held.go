package cli

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// stateDir is the default state directory of lockstep up.
const stateDir = ".lockstep"

// kubeconfigOrHeld is the help of --kubeconfig for commands that only read.
const kubeconfigOrHeld = "the cluster (default $KUBECONFIG, then a running lockstep up of this directory, then ~/.kube/config)"

// orHeld returns the kubeconfig of a running lockstep up in the default state directory if none is named by flag or
// environment, and prints that. A cluster that was brought up here a moment ago is more likely meant than the one of
// the home directory.
func orHeld(env Environment, kubeconfig string) string {
	if kubeconfig != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return kubeconfig
	}
	held, ok := cluster.Held(stateDir)
	if !ok {
		return ""
	}
	_, _ = fmt.Fprintln(
		env.Err,
		"lockstep: asking the cluster that lockstep up holds in "+stateDir,
	) // there is nowhere left to complain
	return held
}
