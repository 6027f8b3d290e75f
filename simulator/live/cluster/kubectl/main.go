// Command kubectl is Kubernetes' own kubectl, for tests of what users do with it. It is a module of its own, so that
// its dependencies stay out of Lockstep's.
package main

import (
	"os"

	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	if err := cmd.NewDefaultKubectlCommand().Execute(); err != nil {
		os.Exit(1) // it has printed why
	}
}
