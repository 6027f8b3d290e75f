package v1alpha1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const manifests = "../../../manifests/chart/crds"

// TestCRD_BothVersionsAreServed guards the promise that v2alpha1 is v1alpha1 by another name.
func TestCRD_BothVersionsAreServed(t *testing.T) {
	for _, kind := range []string{"trainjobs", "trainingruntimes", "clustertrainingruntimes"} {
		t.Run(kind, func(t *testing.T) {
			crd := readCRD(t, kind)
			if len(crd.Spec.Versions) != 2 {
				t.Fatalf("%d versions, want 2", len(crd.Spec.Versions))
			}
			stored, alias := crd.Spec.Versions[0], crd.Spec.Versions[1]
			if stored.Name != "v1alpha1" || !stored.Served || !stored.Storage {
				t.Errorf("first version %s served=%v storage=%v, want v1alpha1 served and stored",
					stored.Name, stored.Served, stored.Storage)
			}
			if alias.Name != "v2alpha1" || !alias.Served || alias.Storage {
				t.Errorf("second version %s served=%v storage=%v, want v2alpha1 served and not stored",
					alias.Name, alias.Served, alias.Storage)
			}
			stored.Name, stored.Storage = alias.Name, alias.Storage
			if diff := cmp.Diff(stored, alias); diff != "" {
				t.Errorf("the versions differ:\n%s", diff)
			}
			if crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
				t.Errorf("conversion %v, want None", crd.Spec.Conversion)
			}
		})
	}
}

// TestCRD_ManifestsAreValid runs the API server's own validation, which also bounds the cost of the rules.
func TestCRD_ManifestsAreValid(t *testing.T) {
	for _, kind := range []string{"trainjobs", "trainingruntimes", "clustertrainingruntimes"} {
		t.Run(kind, func(t *testing.T) {
			faults := validation.ValidateCustomResourceDefinition(t.Context(), internalCRD(t, kind))
			if len(faults) > 0 {
				t.Error(faults.ToAggregate())
			}
		})
	}
}

func claims(list string) string { return "trainer: {resourceClaimsPerNode: [" + list + "]}" }

// TestCRD_SchemaAndRules sends objects through defaulting, the schema and its rules, as the API server does.
func TestCRD_SchemaAndRules(t *testing.T) {
	const job = "metadata: {name: %}\nspec:\n  runtimeRef: {name: rt}\n"
	schemas := map[string]*apiextensions.JSONSchemaProps{}
	for _, kind := range []string{"trainjobs", "trainingruntimes", "clustertrainingruntimes"} {
		schemas[kind] = openAPI(t, kind)
	}
	for name, test := range map[string]struct{ kind, object, old, want string }{
		"plain job":    {kind: "trainjobs", object: strings.Replace(job, "%", "train", 1)},
		"no spec":      {kind: "trainjobs", object: "metadata: {name: train}"},
		"no runtime":   {kind: "trainjobs", object: "metadata: {name: train}\nspec: {}", want: "spec.runtimeRef: Required"},
		"digit first":  {kind: "trainjobs", object: strings.Replace(job, "%", "1a", 1), want: "RFC 1035 DNS label format"},
		"long name":    {kind: "trainjobs", object: strings.Replace(job, "%", strings.Repeat("a", 64), 1), want: "no more than 63"},
		"managedBy":    {kind: "trainjobs", object: train("managedBy: me"), want: "ManagedBy must be"},
		"uri":          {kind: "trainjobs", object: train("initializer: {dataset: {storageUri: 'here'}}"), want: "storageUri may be empty"},
		"no uri":       {kind: "trainjobs", object: train("initializer: {dataset: {storageUri: ''}}")},
		"no deadline":  {kind: "trainjobs", object: train("activeDeadlineSeconds: 0"), want: "greater than or equal to 1"},
		"processes":    {kind: "trainjobs", object: train("trainer: {numProcPerNode: auto}"), want: "must be of type integer"},
		"negative":     {kind: "trainjobs", object: train("trainer: {numNodes: -5}")},
		"size":         {kind: "trainjobs", object: train("trainer: {numNodes: 2}"), old: train("trainer: {numNodes: 1}"), want: "spec.trainer.numNodes: Invalid value: field is immutable unless"},
		"no size":      {kind: "trainjobs", object: train("trainer: {}"), old: train("trainer: {numNodes: 1}"), want: "spec.trainer.numNodes"},
		"resources":    {kind: "trainjobs", object: train("trainer: {resourcesPerNode: {limits: {cpu: 2}}}"), old: train("trainer: {resourcesPerNode: {limits: {cpu: 1}}}"), want: "spec.trainer.resourcesPerNode"},
		"queued size":  {kind: "trainjobs", object: train("suspend: true\ntrainer: {numNodes: 2, image: a}"), old: train("suspend: true\ntrainer: {numNodes: 1, image: a}")},
		"resumed size": {kind: "trainjobs", object: train("trainer: {resourcesPerNode: {limits: {cpu: 2}}}"), old: train("suspend: true\ntrainer: {}")},
		"queued image": {kind: "trainjobs", object: train("suspend: true\ntrainer: {image: b}"), old: train("suspend: true\ntrainer: {image: a}"), want: "field is immutable"},
		"queued args":  {kind: "trainjobs", object: train("suspend: true\ntrainer: {numNodes: 2, args: [a]}"), old: train("suspend: true\ntrainer: {numNodes: 1}"), want: "field is immutable"},
		"claims":       {kind: "trainjobs", object: train(claims("{name: gpus, resourceClaimTemplateName: four}, {name: nics, resourceClaimName: all}"))},
		"empty claim":  {kind: "trainjobs", object: train(claims("{name: a}")), want: "exactly one of resourceClaimName and resourceClaimTemplateName"},
		"double claim": {kind: "trainjobs", object: train(claims("{name: a, resourceClaimName: b, resourceClaimTemplateName: c}")), want: "exactly one of resourceClaimName and resourceClaimTemplateName"},
		"named claim":  {kind: "trainjobs", object: train(claims("{name: a.b, resourceClaimName: b}")), want: "should match"},
		"runtime":      {kind: "trainjobs", object: train(""), old: strings.Replace(train(""), "name: rt", "name: old", 1), want: "field is immutable"},
		"patched":      {kind: "trainjobs", object: train(patch("securityContext: {runAsUser: 1}")), old: train(patch("securityContext: {runAsUser: 2}")), want: "field is immutable"},
		"account":      {kind: "trainjobs", object: train(patch("serviceAccountName: a")), old: train(patch("serviceAccountName: b"))},
		"volumes":      {kind: "trainjobs", object: train(patch("volumes: [{name: a, emptyDir: {}}]")), old: train(patch("volumes: [{name: b, emptyDir: {}}]"))},
		"node chosen":  {kind: "trainjobs", object: train(patch("nodeSelector: {a: b}")), old: train(patch("nodeSelector: {a: c}"))},
		"grace":        {kind: "trainjobs", object: train(patch("terminationGracePeriodSeconds: -1")), want: "greater than or equal to 0"},
		"status":       {kind: "trainjobs", object: train("") + "\nstatus: {trainerStatus: {progressPercentage: 101, lastUpdatedTime: '2026-11-21T10:00:00Z'}}", want: "less than or equal to 100"},
		"status time":  {kind: "trainjobs", object: train("") + "\nstatus: {trainerStatus: {progressPercentage: 1}}", want: "lastUpdatedTime is required when trainerStatus is present"},
		"two policies": {kind: "trainingruntimes", object: "metadata: {name: rt}\nspec: {mlPolicy: {torch: {}, jax: {}}}", want: "Only one of the policy"},
		"one policy":   {kind: "clustertrainingruntimes", object: "metadata: {name: rt}\nspec: {mlPolicy: {torch: {}}}"},
		"injection": {
			kind:   "clustertrainingruntimes",
			object: "metadata: {name: rt}\nspec: {mlPolicy: {torch: {envInjection: {targets: [{jobName: node, containerNames: [node]}]}}}}",
			want:   "containerNames must not include the main node container",
		},
		"whole gang":           {kind: "trainingruntimes", object: scheduled("{}")},
		"policy":               {kind: "clustertrainingruntimes", object: scheduled("{schedulingPolicy: {basic: {}}}")},
		"no policy":            {kind: "trainingruntimes", object: scheduled("{schedulingPolicy: {}}"), want: "exactly one of gang and basic"},
		"two policies at once": {kind: "trainingruntimes", object: scheduled("{schedulingPolicy: {gang: {}, basic: {}}}"), want: "exactly one of gang and basic"},
		"disruption":           {kind: "trainingruntimes", object: scheduled("{disruptionMode: {single: {}, all: {}}}"), want: "exactly one of single and all"},
		"no topology":          {kind: "trainingruntimes", object: scheduled("{schedulingConstraints: {}}"), want: "one topology key"},
		"two topologies":       {kind: "trainingruntimes", object: scheduled("{schedulingConstraints: {topology: [{key: a}, {key: b}]}}"), want: "at most 1 item"},
		"claim of nobody":      {kind: "trainingruntimes", object: scheduled("{resourceClaims: [{name: a}]}"), want: "exactly one of resourceClaimName"},
		"two levels": {
			kind:   "trainingruntimes",
			object: scheduled("{disruptionMode: {all: {}}, replicatedJobs: [{targetReplicatedJobs: [node]}]}"),
			want:   "mutually exclusive",
		},
		"groups":        {kind: "trainingruntimes", object: scheduled("{replicatedJobs: [{targetReplicatedJobs: [node], disruptionMode: {all: {}}}]}")},
		"group of none": {kind: "trainingruntimes", object: scheduled("{replicatedJobs: [{targetReplicatedJobs: []}]}"), want: "at least 1 items"},
		"two schedulers": {
			kind:   "trainingruntimes",
			object: scheduled("{}") + "\n  podGroupPolicy: {coscheduling: {}}",
			want:   "scheduling and podGroupPolicy are mutually exclusive",
		},
		"flux": {kind: "trainingruntimes", object: "metadata: {name: rt}\nspec: {mlPolicy: {flux: {numProcPerNode: 0}}}", want: "must be >= 1"},
		"mpi":  {kind: "trainingruntimes", object: "metadata: {name: rt}\nspec: {mlPolicy: {mpi: {mpiImplementation: MPICH}}}", want: "Unsupported value"},
		"jobset": {
			kind:   "trainingruntimes",
			object: "metadata: {name: rt}\nspec: {template: {spec: {network: {subdomain: a}}}}",
			old:    "metadata: {name: rt}\nspec: {template: {spec: {network: {subdomain: b}}}}",
			want:   "Value is immutable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			faults := check(t, schemas[test.kind], test.object, test.old)
			if test.want == "" && len(faults) > 0 || !strings.Contains(text(faults), test.want) {
				t.Errorf("got %q, want %q", text(faults), test.want)
			}
		})
	}
}

func TestCRD_Defaults(t *testing.T) {
	object := decode(t, train(""))
	defaulting.Default(object, structural(t, openAPI(t, "trainjobs")))
	want := decode(t, train("suspend: false\nmanagedBy: trainer.kubeflow.org/trainjob-controller"))
	reference := want["spec"].(map[string]any)["runtimeRef"].(map[string]any)
	reference["apiGroup"], reference["kind"] = "trainer.kubeflow.org", "ClusterTrainingRuntime"
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	rt := decode(t, `spec: {mlPolicy: {mpi: {}}, podGroupPolicy: {coscheduling: {}, volcano: {networkTopology: {}}}}`)
	defaulting.Default(rt, structural(t, openAPI(t, "trainingruntimes")))
	want = decode(t, `spec:
  mlPolicy: {mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, sshAuthMountPath: /root/.ssh, runLauncherAsNode: false}}
  podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 60}, volcano: {networkTopology: {mode: hard, highestTierAllowed: 1}}}`)
	if diff := cmp.Diff(want, rt); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// train returns a TrainJob with more lines in its spec.
func train(more string) string {
	return "metadata: {name: train}\nspec:\n  runtimeRef: {name: rt}\n  " + strings.ReplaceAll(more, "\n", "\n  ")
}

// scheduled returns a runtime with scheduling.
func scheduled(scheduling string) string {
	return "metadata: {name: rt}\nspec:\n  scheduling: " + scheduling
}

// patch is a runtime patch of one pod field.
func patch(field string) string {
	return "runtimePatches: [{manager: acme.io/x, trainingRuntimeSpec: {template: {spec: {replicatedJobs: " +
		"[{name: node, template: {spec: {template: {spec: {" + field + "}}}}}]}}}}]"
}

func check(t *testing.T, openAPI *apiextensions.JSONSchemaProps, object, old string) field.ErrorList {
	t.Helper()
	schema := structural(t, openAPI)
	now := decode(t, object)
	defaulting.Default(now, schema)
	before := map[string]any(nil)
	if old != "" {
		before = decode(t, old)
		defaulting.Default(before, schema)
	}
	validator, _, err := schemavalidation.NewSchemaValidator(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	faults := schemavalidation.ValidateCustomResource(nil, now, validator)
	if len(faults) > 0 {
		return faults
	}
	rules := cel.NewValidator(schema, true, celconfig.PerCallLimit)
	var oldObject any
	if before != nil {
		oldObject = before
	}
	faults, _ = rules.Validate(t.Context(), nil, schema, now, oldObject, celconfig.RuntimeCELCostBudget)
	return faults
}

func text(faults field.ErrorList) string {
	if len(faults) == 0 {
		return ""
	}
	return faults.ToAggregate().Error()
}

func structural(t *testing.T, openAPI *apiextensions.JSONSchemaProps) *structuralschema.Structural {
	t.Helper()
	schema, err := structuralschema.NewStructural(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func openAPI(t *testing.T, kind string) *apiextensions.JSONSchemaProps {
	t.Helper()
	schema, err := apiextensions.GetSchemaForVersion(internalCRD(t, kind), "v2alpha1")
	if err != nil || schema == nil {
		t.Fatalf("no schema: %v", err)
	}
	return schema.OpenAPIV3Schema
}

func readCRD(t *testing.T, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(manifests, "trainer.kubeflow.org_"+kind+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err = yaml.UnmarshalStrict(content, &crd); err != nil {
		t.Fatal(err)
	}
	return &crd
}

// internalCRD is a manifest as the API server sees it, with both versions' schemas in place.
func internalCRD(t *testing.T, kind string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	crd := readCRD(t, kind)
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	crd.Status.StoredVersions = []string{"v1alpha1"}
	var internal apiextensions.CustomResourceDefinition
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		crd,
		&internal,
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	return &internal
}

func decode(t *testing.T, object string) map[string]any {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err = json.Unmarshal(text, &content); err != nil { // decodes integers as integers, as the API server does
		t.Fatal(err)
	}
	return content
}
