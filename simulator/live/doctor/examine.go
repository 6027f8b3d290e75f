package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/manifests/chart"
)

// Examine asks a cluster, and returns its answers and the findings of this release. With an error, the facts are those
// until then.
func Examine(ctx context.Context, client kubernetes.Interface, untyped dynamic.Interface) (Facts, []Finding, error) {
	facts, err := Gather(ctx, client, untyped)
	if err != nil {
		return facts, nil, err
	}
	schema, err := schemaOfTrainJobs()
	if err != nil {
		return facts, nil, err
	}
	return facts, Judge(facts, schema), nil
}

// errNoSchema indicates that the chart in this binary is not whole.
var errNoSchema = errors.New("the chart has no CRD of TrainJobs")

// schemaOfTrainJobs returns the sum of this release's CRD.
func schemaOfTrainJobs() (string, error) {
	crds, err := chart.CRDs()
	if err != nil {
		return "", fmt.Errorf("reading the CRDs: %w", err)
	}
	for _, crd := range crds {
		if crd.GetName() == "trainjobs.trainer.kubeflow.org" {
			return crd.GetAnnotations()[chart.SchemaAnnotation], nil
		}
	}
	return "", errNoSchema
}

// Write writes findings as a table, a line each, and a line for the remedy.
func Write(out io.Writer, findings []Finding) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, finding := range findings {
		_, _ = fmt.Fprintf(
			table,
			"%s\t%s\t%s\n",
			finding.Check,
			finding.State,
			finding.Found,
		) // Flush returns the error
		if finding.Mend != "" {
			_, _ = fmt.Fprintf(table, "\t\t→ %s\n", finding.Mend)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	return nil
}
