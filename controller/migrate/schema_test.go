package migrate_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/migrate"
)

// TestMigrate_APIServerAcceptsResults validates every resulting object of our group with the schema of its CRD, as the
// API server does: defaults, types and limits, lists' keys, rules.
func TestMigrate_APIServerAcceptsResults(t *testing.T) {
	schemas := map[string]*apiextensions.JSONSchemaProps{
		"TrainJob":               schemaOf(t, "trainjobs"),
		"TrainingRuntime":        schemaOf(t, "trainingruntimes"),
		"ClusterTrainingRuntime": schemaOf(t, "clustertrainingruntimes"),
	}
	for _, dir := range cases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			result, err := migrate.Documents(readDocuments(t, filepath.Join(dir, "in.yaml")))
			if err != nil {
				return // want-error.txt has the reason
			}
			for _, object := range result.Objects {
				kind, _ := object["kind"].(string)
				if schema := schemas[kind]; schema != nil {
					accept(t, schema, runtime.DeepCopyJSON(object))
				}
			}
		})
	}
}

func accept(t *testing.T, openAPI *apiextensions.JSONSchemaProps, object map[string]any) {
	t.Helper()
	metadata, _ := object["metadata"].(map[string]any)
	if prefix, isText := metadata["generateName"].(string); isText && metadata["name"] == nil {
		metadata["name"] = prefix + "x7k2p"
	}
	schema, err := structuralschema.NewStructural(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	defaulting.Default(object, schema)
	validator, _, err := schemavalidation.NewSchemaValidator(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	faults := schemavalidation.ValidateCustomResource(nil, object, validator)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, schema, object)...)
	if len(faults) == 0 {
		rules := cel.NewValidator(schema, true, celconfig.PerCallLimit)
		faults, _ = rules.Validate(t.Context(), nil, schema, object, nil, celconfig.RuntimeCELCostBudget)
	}
	if len(faults) > 0 {
		t.Errorf("%s %s is refused: %v", object["kind"], metadata["name"], faults.ToAggregate())
	}
}

func schemaOf(t *testing.T, plural string) *apiextensions.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../manifests/chart/crds", "trainer.kubeflow.org_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err = yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	var internal apiextensions.CustomResourceDefinition
	if err = apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		&crd, &internal, nil,
	); err != nil {
		t.Fatal(err)
	}
	schema, err := apiextensions.GetSchemaForVersion(&internal, "v1alpha1")
	if err != nil || schema == nil {
		t.Fatalf("no schema: %v", err)
	}
	return schema.OpenAPIV3Schema
}
