package docs_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

// TestTable_OfTrainJobs prints the TrainJobs of the snapshot as kubectl would have when it was taken: by the columns of
// the CRD, the API server's table and kubectl's printer.
func TestTable_OfTrainJobs(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	read(t, "manifests/chart/crds/trainer.kubeflow.org_trainjobs.yaml", &crd)
	snapshot, err := capture.ReadFile(filepath.Join(root, "docs/examples/busy.snapshot.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	columns := crd.Spec.Versions[0].AdditionalPrinterColumns
	list := &unstructured.UnstructuredList{}
	for _, job := range snapshot.TrainJobs {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
		if err != nil {
			t.Fatal(err)
		}
		list.Items = append(list.Items, unstructured.Unstructured{Object: content})
	}
	ages(t, list, columns, snapshot.Manifest.Taken)
	convertor, err := tableconvertor.New(columns)
	if err != nil {
		t.Fatal(err)
	}
	table, err := convertor.ConvertToTable(t.Context(), list, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, &out); err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{"trainjobs": page.Transcript("kubectl get trainjobs", out.String())}
	for _, job := range snapshot.TrainJobs {
		if job.Name == "pretrain" {
			command := "kubectl get trainjob pretrain -o jsonpath='{.status.scheduling.reason}'"
			blocks["reason"] = page.Transcript(command, job.Status.Scheduling.Reason)
		}
	}
	page.Page{
		File:   "docs/where-is-my-job.md",
		Marker: "go test ./simulator/checks/docs",
		Write:  *rewrite,
		Mend:   mend,
	}.HasOnly(
		t,
		blocks,
	)
}

// ages writes how old each date of a column was at an instant into the objects, and makes the column one of words: the
// API server counts to now.
func ages(
	t *testing.T,
	list *unstructured.UnstructuredList,
	columns []apiextensionsv1.CustomResourceColumnDefinition,
	at time.Time,
) {
	t.Helper()
	for i, column := range columns {
		if column.Type != "date" {
			continue
		}
		columns[i].Type, columns[i].JSONPath = "string", ".ages."+column.Name
		path := strings.Split(strings.TrimPrefix(column.JSONPath, "."), ".")
		for _, item := range list.Items {
			text, found, err := unstructured.NestedString(item.Object, path...)
			if err != nil || !found {
				continue
			}
			since, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedField(
				item.Object,
				duration.HumanDuration(at.Sub(since)),
				"ages",
				column.Name,
			); err != nil {
				t.Fatal(err)
			}
		}
	}
}
