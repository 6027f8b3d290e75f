package manifests_test

import (
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/manifests"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// rendered are the objects of all files for an installation, by kind, namespace and name.
func rendered(t *testing.T, installation manifests.Installation) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, folder := range []string{".", "crds", "gangs", "controller", "scheduler", "webhooks", "install", "takeover"} {
		files, err := fs.Glob(manifests.Files, folder+"/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			written, err := manifests.Files.ReadFile(strings.TrimPrefix(file, "./"))
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objectsOf(t, render(t, written, installation)) {
				found[strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, " ")] = object.DeepCopy()
			}
		}
	}
	return found
}

func rulesOf(t *testing.T, object *unstructured.Unstructured) []any {
	t.Helper()
	if object == nil {
		t.Fatal("there is no such role")
	}
	rules, _, err := unstructured.NestedSlice(object.Object, "rules")
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// With namespaces, each rule of the controller's ClusterRole is in it or in the Role of each namespace, and no rule about what has a namespace
// is left for the whole cluster.
func TestRender_ForNamespaces(t *testing.T) {
	narrow := manifests.Default()
	narrow.Namespaces = []string{"team-a", "team-b"}
	before, after := rendered(t, manifests.Default()), rendered(t, narrow)
	all := rulesOf(t, before["ClusterRole  lockstep-controller"])
	wide := rulesOf(t, after["ClusterRole  lockstep-controller"])
	for _, namespace := range narrow.Namespaces {
		role := rulesOf(t, after["Role "+namespace+" lockstep-controller"])
		if len(role)+len(wide) != len(all) {
			t.Errorf("%s has %d rules, the ClusterRole %d, together not %d", namespace, len(role), len(wide), len(all))
		}
		for _, rule := range all {
			same := func(other any) bool { return reflect.DeepEqual(rule, other) }
			if slices.ContainsFunc(role, same) == slices.ContainsFunc(wide, same) {
				t.Errorf("%v is in both roles or in none", rule)
			}
		}
		binding := after["RoleBinding "+namespace+" lockstep-controller"]
		if binding == nil ||
			!reflect.DeepEqual(
				binding.Object["subjects"],
				before["ClusterRoleBinding  lockstep-controller"].Object["subjects"],
			) {
			t.Errorf("the binding in %s is %v", namespace, binding)
		}
	}
	for _, rule := range wide {
		for _, resource := range rule.(map[string]any)["resources"].([]any) {
			if !slices.ContainsFunc(manifests.ClusterScoped(), func(known string) bool {
				return strings.HasSuffix(known, "/"+fmt.Sprint(resource))
			}) {
				t.Errorf("%v is left for the whole cluster", resource)
			}
		}
	}
	arguments := fmt.Sprint(after["Deployment lockstep-system lockstep-controller"].Object["spec"])
	if !strings.Contains(arguments, "--namespaces=team-a,team-b") {
		t.Errorf("the Deployment does not say --namespaces: %s", arguments)
	}
	webhooksOf(t, after)
}

// webhooksOf checks that webhooks are asked about these namespaces only, and about nothing that has none.
func webhooksOf(t *testing.T, objects map[string]*unstructured.Unstructured) {
	t.Helper()
	var names []string
	for key, object := range objects {
		if !strings.Contains(key, "WebhookConfiguration") {
			continue
		}
		webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		for _, entry := range webhooks {
			webhook := entry.(map[string]any)
			names = append(names, fmt.Sprint(webhook["name"]))
			selector, _, _ := unstructured.NestedSlice(webhook, "namespaceSelector", "matchExpressions")
			want := "[map[key:kubernetes.io/metadata.name operator:In values:[team-a team-b]]]"
			if fmt.Sprint(selector) != want {
				t.Errorf("%v is asked about %v", webhook["name"], selector)
			}
		}
	}
	slices.Sort(names)
	want := []string{
		"defaulter.trainjob.trainer.kubeflow.org", "validator.trainingruntime.trainer.kubeflow.org",
		"validator.trainjob.trainer.kubeflow.org",
	}
	if !slices.Equal(names, want) {
		t.Errorf("webhooks %v, want %v", names, want)
	}
}

// An installation that takes over has the right to the other lease where that is, and says so to the controller, also when it is rendered
// again.
func TestRender_TakesOver(t *testing.T) {
	installation := manifests.Default()
	installation.TakeOver, installation.Flags = "kubeflow", []string{"--gang-default=on"}
	objects := rendered(t, installation)
	for _, kind := range []string{"Role", "RoleBinding"} {
		if objects[kind+" kubeflow lockstep-controller-take-over"] == nil {
			t.Errorf("there is no %s in the namespace of Kubeflow Trainer", kind)
		}
	}
	deployment := fmt.Sprint(objects["Deployment lockstep-system lockstep-controller"].Object)
	if want := "--namespace=lockstep-system --take-over=kubeflow --gang-default=on]"; !strings.Contains(
		deployment,
		want,
	) {
		t.Errorf("the Deployment has not the arguments %q:\n%s", want, deployment)
	}
	if len(rulesOf(t, objects["ClusterRole  lockstep-controller"])) !=
		len(rulesOf(t, rendered(t, manifests.Default())["ClusterRole  lockstep-controller"])) {
		t.Error("the rights are not those of an installation that takes nothing over")
	}
	installation.Namespaces = []string{"team-a"}
	if err := installation.Validate(); err == nil || !strings.Contains(err.Error(), "nobody would handle") {
		t.Errorf("with namespaces it is answered %v", err)
	}
}

// The controller keeps caches of what its role lets it list, and of nothing that is not in a namespace.
func TestWatched(t *testing.T) {
	for api, gangs := range map[gangapi.API]string{
		gangapi.Native:    "workloads.scheduling.k8s.io podgroups.scheduling.k8s.io",
		gangapi.Resources: "podgroups.scheduling.lockstep.dev",
	} {
		found, err := manifests.Watched(api)
		if err != nil {
			t.Fatal(err)
		}
		want := "trainjobs.trainer.kubeflow.org trainingruntimes.trainer.kubeflow.org jobsets.jobset.x-k8s.io " + gangs +
			" computedomains.resource.nvidia.com configmaps"
		var got []string
		for _, resource := range found {
			got = append(got, resource.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: it caches %v, want %s", api, got, want)
		}
	}
}

// Who knows where gangs are kept gets no right, and no CRD, for the other API; with rights for both, discovery decides at the first start.
func TestRender_ForOneAPIOfGangs(t *testing.T) {
	const native, resources = "scheduling.k8s.io/podgroups", "scheduling.lockstep.dev/podgroups"
	for _, c := range []struct {
		api  gangapi.API
		want []string
	}{{"", []string{native, resources}}, {gangapi.Native, []string{native}}, {gangapi.Resources, []string{resources}}} {
		installation := manifests.Default()
		installation.GangAPI = c.api
		for id, object := range rendered(t, installation) {
			if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
				continue
			}
			found := map[string]bool{}
			for _, rule := range rulesOf(t, object) {
				groups, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "apiGroups")
				names, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
				for _, group := range groups {
					for _, name := range names {
						found[group+"/"+name] = true
					}
				}
			}
			if len(rulesOf(t, object)) == 0 {
				t.Errorf("%s has no rules left", id)
			}
			for _, resource := range []string{native, resources, "scheduling.k8s.io/workloads", "scheduling.k8s.io/podgroups/status"} {
				group, _, _ := strings.Cut(resource, "/")
				if found[resource] && !slices.Contains(c.want, group+"/podgroups") {
					t.Errorf("api %q: %s has rights on %s", c.api, id, resource)
				}
			}
			if id == "ClusterRole  lockstep-controller" || id == "ClusterRole  lockstep-scheduler" {
				for _, resource := range c.want {
					if !found[resource] {
						t.Errorf("api %q: %s has no rights on %s", c.api, id, resource)
					}
				}
			}
		}
		crd := rendered(t, installation)["CustomResourceDefinition  podgroups.scheduling.lockstep.dev"]
		if (crd == nil) != (c.api == gangapi.Native) {
			t.Errorf("api %q: the CRD of PodGroups is rendered: %t", c.api, crd != nil)
		}
		arguments := fmt.Sprint(rendered(t, installation)["Deployment lockstep-system lockstep-controller"])
		if got := strings.Contains(arguments, "--gang-api="+string(c.api)); c.api != "" && !got {
			t.Errorf("api %q: the controller is not told", c.api)
		}
	}
}

// Beside Kubeflow Trainer, its jobs do not depend on Lockstep's webhooks, which only choose among those that are new.
func TestRender_BesideAsksAboutChosenJobs(t *testing.T) {
	conditions := func(flags ...string) map[string]string {
		installation := manifests.Default()
		installation.Flags = flags
		found := map[string]string{}
		for _, object := range rendered(t, installation) {
			webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
			for _, entry := range webhooks {
				webhook := entry.(map[string]any)
				for _, condition := range asSlice(webhook["matchConditions"]) {
					found[webhook["name"].(string)] += condition.(map[string]any)["expression"].(string)
				}
			}
		}
		return found
	}
	const ours = ".spec.managedBy == 'lockstep.dev/trainjob-controller'"
	got := conditions("--manage=chosen")
	if len(got) != 2 || !strings.HasSuffix(got["validator.trainjob.trainer.kubeflow.org"], "object"+ours) ||
		!strings.HasPrefix(got["defaulter.trainjob.trainer.kubeflow.org"], "request.operation == 'CREATE' || ") ||
		!strings.HasSuffix(got["defaulter.trainjob.trainer.kubeflow.org"], "oldObject"+ours) {
		t.Errorf("beside, the conditions are %v", got)
	}
	if alone := conditions("--gang-default=on"); len(alone) > 0 {
		t.Errorf("alone, webhooks have conditions: %v", alone)
	}
}

func asSlice(value any) []any {
	slice, _ := value.([]any)
	return slice
}
