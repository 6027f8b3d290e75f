package podgroups_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install" // registers the native PodGroup
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// shippedCRD is the CRD of PodGroups that Lockstep installs.
func shippedCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := chart.Files.ReadFile("crds/scheduling.lockstep.dev_podgroups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	return &crd
}

// The API server accepts the CRD itself. It refuses one whose rules could take too long.
func TestCRD_IsAccepted(t *testing.T) {
	crd := shippedCRD(t)
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		crd, &internal, nil,
	); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{"v1beta1"} // as the API server fills it in
	if faults := crdvalidation.ValidateCustomResourceDefinition(t.Context(), &internal); len(faults) > 0 {
		t.Error(faults.ToAggregate())
	}
}

// crdServer validates specs as an API server does that serves the shipped CRD.
type crdServer struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func newCRDServer(t *testing.T) *crdServer {
	t.Helper()
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		shippedCRD(t).Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil,
	); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	schema, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		t.Fatal(err)
	}
	return &crdServer{structural, schema, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// stores prunes, defaults and validates a group with a spec. An empty old creates it, another one is replaced.
func (s *crdServer) stores(ctx context.Context, old, next string) error {
	group, err := s.object(next)
	if err != nil {
		return err
	}
	faults := validation.ValidateCustomResource(nil, group, s.schema)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, s.structural, group)...)
	var before any
	if old != "" {
		if before, err = s.object(old); err != nil {
			return err
		}
	}
	found, _ := s.rules.Validate(ctx, nil, s.structural, group, before, celconfig.RuntimeCELCostBudget)
	if faults = append(faults, found...); len(faults) > 0 {
		return faults.ToAggregate()
	}
	return nil
}

func (s *crdServer) object(spec string) (map[string]any, error) {
	var tree map[string]any
	if err := json.Unmarshal([]byte(specified(gangapi.Resources, spec)), &tree); err != nil {
		return nil, err
	}
	group, ok := integers(tree).(map[string]any)
	if !ok {
		return nil, errors.New("the group is no object")
	}
	pruning.Prune(group, s.structural, true)
	defaulting.Default(group, s.structural)
	return group, nil
}

// specified is a group with a spec, as JSON.
func specified(api gangapi.API, spec string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"PodGroup","metadata":{"namespace":"team-a","name":"gang",`+
		`"uid":"1","resourceVersion":"7","creationTimestamp":"2026-11-25T10:00:00Z"},"spec":%s}`, api.Version(), spec)
}

// nativeStores validates a group with a spec as Kubernetes' API server does.
func nativeStores(ctx context.Context, old, next string) error {
	strategy := podgroup.NewStrategy()
	ctx = request.WithNamespace(ctx, "team-a")
	verb := "create"
	if old != "" {
		verb = "update"
	}
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		APIGroup:          "scheduling.k8s.io",
		APIVersion:        "v1beta1",
		Resource:          "podgroups",
		Verb:              verb,
		IsResourceRequest: true,
	})
	group, err := nativeObject(next)
	if err != nil {
		return err
	}
	if old == "" {
		return rest.BeforeCreate(strategy, ctx, group)
	}
	before, err := nativeObject(old)
	if err != nil {
		return err
	}
	return rest.BeforeUpdate(strategy, ctx, group, before)
}

// nativeObject decodes a group with a spec, with the defaults of Kubernetes' API server.
func nativeObject(spec string) (*scheduling.PodGroup, error) {
	object, err := runtime.Decode(
		legacyscheme.Codecs.UniversalDecoder(scheduling.SchemeGroupVersion), []byte(specified(gangapi.Native, spec)),
	)
	if err != nil {
		return nil, err
	}
	group, ok := object.(*scheduling.PodGroup)
	if !ok {
		return nil, fmt.Errorf("decoded a %T", object)
	}
	group.CreationTimestamp = metav1.Now()
	return group, nil
}

// choices has the values that each field of a spec is drawn from; "" leaves the field out. Values that Go's encoding
// leaves out ("" and []) are not among them: Kubernetes takes such a field for one that is missing, and the CRD refuses
// to exchange the two.
var choices = []choice{
	{
		"schedulingPolicy",
		[]string{
			`{"gang":{"minCount":4}}`,
			`{"gang":{"minCount":5}}`,
			`{"gang":{"minCount":0}}`,
			`{"gang":{"minCount":-1}}`,
			`{"gang":{}}`,
			`{"basic":{}}`,
			`{"gang":{"minCount":4},"basic":{}}`,
			`{}`,
			``,
		},
	},
	{"workloadRef", []string{
		``, ``, `{"workloadName":"w","templateName":"a"}`, `{"workloadName":"w","templateName":"b"}`,
		`{"workloadName":"","templateName":"a"}`, `{"workloadName":"w"}`, `{"workloadName":"W w","templateName":"a"}`,
		`{"workloadName":"w","templateName":"a.b"}`, `{"workloadName":"w.example.com","templateName":"a-1"}`,
		`{"workloadName":"w","templateName":"` + strings.Repeat("a", 64) + `"}`,
	}},
	{
		"schedulingConstraints",
		[]string{
			``,
			``,
			`{}`,
			`{"topology":[{"key":"rack"}]}`,
			`{"topology":[{"key":"example.com/zone"}]}`,
			`{"topology":[{"key":"rack"},{"key":"zone"}]}`,
			`{"topology":[{"key":""}]}`,
			`{"topology":[{"key":"no label"}]}`,
			`{"topology":[{"key":"/rack"}]}`,
			`{"topology":[{"key":"a/b/c"}]}`,
			`{"topology":[{"key":"` + strings.Repeat("k", 64) + `"}]}`,
			`{"topology":[{"key":"` + strings.Repeat("d", 310) + ".example/rack" + `"}]}`,
		},
	},
	{"disruptionMode", []string{``, ``, `{"single":{}}`, `{"all":{}}`, `{"single":{},"all":{}}`, `{}`}},
	{
		"priorityClassName",
		[]string{``, ``, `"urgent"`, `"batch"`, `"No Name"`, `"a..b"`, `"-a"`, `"` + strings.Repeat("c", 254) + `"`},
	},
	{"priority", []string{``, ``, `7`, `8`, `-1`, `1000000000`, `1000000001`}},
}

// choice has the values of one field.
type choice struct {
	field  string
	values []string
}

// created returns the choices without the values that Kubernetes refuses.
func created(t *testing.T) []choice {
	t.Helper()
	var valid []choice
	for _, c := range choices {
		valid = append(valid, choice{c.field, slices.DeleteFunc(slices.Clone(c.values), func(value string) bool {
			fields := map[string]string{"schedulingPolicy": `{"basic":{}}`}
			fields[c.field] = value
			return nativeStores(t.Context(), "", written(fields)) != nil
		})})
	}
	return valid
}

// draw draws a value of each field.
func draw(t *rapid.T, label string, from []choice) map[string]string {
	fields := map[string]string{}
	for _, c := range from {
		fields[c.field] = rapid.SampledFrom(c.values).Draw(t, label+" "+c.field)
	}
	return fields
}

// written is a spec with fields, as JSON.
func written(fields map[string]string) string {
	var parts []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if fields[field] != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", field, fields[field]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func gatesOfNative(t *testing.T) {
	t.Helper()
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		features.GenericWorkload: true, features.TopologyAwareWorkloadScheduling: true,
	})
}

// The CRD accepts exactly the specs that Kubernetes accepts of its own PodGroups: others could not be moved there.
// Fields that the custom resource does not support are left out.
func TestCRD_CreatesWhatKubernetesCreates(t *testing.T) {
	gatesOfNative(t)
	server, valid := newCRDServer(t), created(t)
	rapid.Check(t, func(rt *rapid.T) {
		fields := draw(rt, "new", valid)
		wrong := rapid.SampledFrom(choices).Draw(rt, "field")
		fields[wrong.field] = rapid.SampledFrom(wrong.values).Draw(rt, "value")
		spec := written(fields)
		native, custom := nativeStores(t.Context(), "", spec), server.stores(t.Context(), "", spec)
		if (native == nil) != (custom == nil) {
			rt.Errorf("%s:\nKubernetes says %v,\nthe CRD %v", spec, native, custom)
		}
	})
}

// The CRD accepts exactly the updates that Kubernetes accepts, except that a missing priority is added: Kubernetes'
// admission has set it by then.
func TestCRD_UpdatesWhatKubernetesUpdates(t *testing.T) {
	gatesOfNative(t)
	server, valid := newCRDServer(t), created(t)
	changes := 0
	rapid.Check(t, func(rt *rapid.T) {
		old := draw(rt, "old", valid)
		next := maps.Clone(old)
		for range rapid.IntRange(1, 2).Draw(rt, "changes") {
			changed := rapid.SampledFrom(choices).Draw(rt, "field")
			if changed.field != "priority" || old["priority"] != "" {
				next[changed.field] = rapid.SampledFrom(changed.values).Draw(rt, "value")
			}
		}
		before, after := written(old), written(next)
		native, custom := nativeStores(t.Context(), before, after), server.stores(t.Context(), before, after)
		if (native == nil) != (custom == nil) {
			rt.Errorf("%s to %s:\nKubernetes says %v,\nthe CRD %v", before, after, native, custom)
		}
		if native == nil && before != after {
			changes++
		}
	})
	if changes == 0 {
		t.Error("no change was accepted, and minCount may change")
	}
}

// Each field but minCount retains its value: it is not changed, not added and not removed. A priority alone is added,
// once.
func TestCRD_OnlyMinCountChanges(t *testing.T) {
	server := newCRDServer(t)
	one := map[string]string{
		"schedulingPolicy": `{"gang":{"minCount":4}}`, "workloadRef": `{"workloadName":"w","templateName":"a"}`,
		"schedulingConstraints": `{"topology":[{"key":"rack"}]}`, "disruptionMode": `{"all":{}}`,
		"priorityClassName": `"urgent"`, "priority": "7",
	}
	other := map[string]string{
		"schedulingPolicy": `{"basic":{}}`, "workloadRef": `{"workloadName":"w","templateName":"b"}`,
		"schedulingConstraints": `{"topology":[{"key":"zone"}]}`, "disruptionMode": `{"single":{}}`,
		"priorityClassName": `"batch"`, "priority": "8",
	}
	with := func(field, value string) string {
		fields := maps.Clone(one)
		fields[field] = value
		return written(fields)
	}
	for field := range one {
		if err := server.stores(t.Context(), written(one), with(field, other[field])); err == nil {
			t.Errorf("%s changes", field)
		}
		if err := server.stores(t.Context(), written(one), with(field, "")); err == nil {
			t.Errorf("%s is removed", field)
		}
		if err := server.stores(t.Context(), with(field, ""), written(one)); (err == nil) != (field == "priority") {
			t.Errorf("%s is added: %v", field, err)
		}
	}
	if err := server.stores(
		t.Context(),
		written(one),
		with("schedulingPolicy", `{"gang":{"minCount":5}}`),
	); err != nil {
		t.Errorf("minCount does not change: %v", err)
	}
}

// The resources that need Kubernetes' own PodGroups are refused in words, even if they are valid there.
func TestCRD_RefusesWhatItDoesNotSupport(t *testing.T) {
	server := newCRDServer(t)
	for field, c := range map[string]struct{ value, says string }{
		"parentCompositePodGroupName": {`"x"`, "not supported"},
		"preemptionPolicy":            {`"Never"`, "that of the pods"},
		"resourceClaims":              {`[{"name":"x","resourceClaimName":"y"}]`, "naming it in the pods"},
	} {
		spec := written(map[string]string{"schedulingPolicy": `{"basic":{}}`, field: c.value})
		if err := server.stores(t.Context(), "", spec); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", field, err, c.says)
		}
	}
}

// integers makes the whole numbers of a tree integers, as the API server decodes them.
func integers(tree any) any {
	switch value := tree.(type) {
	case map[string]any:
		for key := range value {
			value[key] = integers(value[key])
		}
	case []any:
		for i := range value {
			value[i] = integers(value[i])
		}
	case float64:
		return int64(value)
	}
	return tree
}
