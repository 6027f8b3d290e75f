// Command render prints what installs the controller, for a namespace and an account, as one stream of YAML for
// kubectl apply --server-side: the namespace, CRDs, roles and policies, webhooks and the Deployment. Flags of lockstep-controller follow
// after --:
//
//	render -take-over kubeflow-system -- --gang-default=on
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/manifests"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(2)
	}
}

// run reads the flags and prints the manifests. The error says what of the flags cannot be used.
func run(arguments []string, out io.Writer) error {
	installation := manifests.Default()
	flags := flag.NewFlagSet("render", flag.ContinueOnError)
	flags.StringVar(&installation.Namespace, "namespace", installation.Namespace, "namespace of the controller")
	flags.StringVar(&installation.Account, "account", installation.Account, "ServiceAccount of the controller")
	namespaces := flags.String(
		"namespaces",
		"",
		"namespaces whose TrainJobs are the controller's, with commas between them; "+
			"empty for all. They have to exist when this is applied",
	)
	flags.StringVar(&installation.TakeOver, "take-over", "",
		"namespace of the Kubeflow Trainer from which the controller takes over (docs/takeover.md)")
	flags.Func("gang-api", "where gangs are kept: native, resources, or auto, with rights for both (default auto)",
		func(text string) (err error) {
			installation.GangAPI, err = gangapi.Parse(text)
			return err
		})
	if at := slices.Index(arguments, "--"); at >= 0 {
		arguments, installation.Flags = arguments[:at], arguments[at+1:]
	}
	if err := flags.Parse(arguments); err != nil {
		return err //nolint:wrapcheck // it names the flag
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; flags of lockstep-controller follow --", flags.Arg(0))
	}
	if *namespaces != "" {
		installation.Namespaces = strings.Split(*namespaces, ",")
	}
	if err := installation.Validate(); err != nil {
		return err
	}
	folders := []string{".", "crds", "gangs", "controller", "access", "webhooks", "install"}
	if installation.TakeOver != "" {
		folders = append(folders, "takeover")
	}
	for _, folder := range folders {
		if err := printFolder(folder, installation, out); err != nil {
			return err
		}
	}
	return nil
}

// printFolder prints the manifests of a folder in the order of their names.
func printFolder(folder string, installation manifests.Installation, out io.Writer) error {
	entries, err := fs.ReadDir(manifests.Files, folder)
	if err != nil {
		return fmt.Errorf("reading %s: %w", folder, err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		content, err := manifests.Files.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			return fmt.Errorf("reading %s: %w", entry.Name(), err)
		}
		rendered, err := manifests.Render(content, installation)
		if err != nil {
			return fmt.Errorf("rendering %s: %w", entry.Name(), err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", rendered); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}
