package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/release"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// manifestsOptions are the flags of lockstep manifests.
type manifestsOptions struct {
	release render.Release
	files   []string
	sets    []string
}

func newManifests(env Environment) *cobra.Command {
	options := manifestsOptions{release: render.Default()}
	options.release.Version = release.Current().Tag()
	command := &cobra.Command{
		Use:   "manifests",
		Short: "Print what installs Lockstep, for kubectl and for GitOps",
		Long: "Print what installs Lockstep: what Helm installs of the chart, with a namespace and without hooks, in the order in which\n" +
			"it is applied. JobSet must be there. The values are those of the chart; images are of this command's version.\n\n" +
			"  lockstep crds | kubectl apply -f -        # first: kubectl looks up all kinds before it applies the first object\n" +
			"  lockstep manifests --set image.registry=registry.example/lockstep | kubectl apply -f -",
		Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return runManifests(env.Out, options) },
	}
	flags := command.Flags()
	flags.StringVarP(&options.release.Namespace, "namespace", "n", options.release.Namespace, "namespace of Lockstep")
	flags.StringArrayVarP(&options.files, "values", "f", nil, "a file of values (repeatable)")
	flags.StringArrayVar(&options.sets, "set", nil, "a value as NAME=VALUE, over those of files (repeatable)")
	return command
}

func runManifests(out io.Writer, options manifestsOptions) error {
	for _, file := range options.files {
		content, err := os.ReadFile(file)
		if err == nil {
			options.release, err = options.release.WithFile(content)
		}
		if err != nil {
			return badinput.At(file, 0, err.Error(), "give a YAML file with values of the chart")
		}
	}
	for _, set := range options.sets {
		var err error
		if options.release, err = options.release.WithSet(set); err != nil {
			return &badinput.Error{Where: "--set " + set, What: err.Error(), Mend: "write NAME=VALUE, as for helm"}
		}
	}
	rendered, err := render.Chart(options.release)
	if err != nil {
		return &badinput.Error{
			Where: "lockstep manifests", What: err.Error(), Mend: "see manifests/chart/values.yaml for what there is",
		}
	}
	return printObjects(
		out,
		append([]*unstructured.Unstructured{render.Namespace(options.release.Namespace)}, rendered.All()...),
	)
}

// printObjects prints objects as a stream of YAML.
func printObjects(out io.Writer, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err == nil {
			_, err = fmt.Fprintf(out, "---\n%s", content)
		}
		if err != nil {
			return fmt.Errorf("printing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
