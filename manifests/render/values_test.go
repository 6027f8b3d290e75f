package render_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/render"
)

// rendered are the objects of a release, by kind, namespace and name.
func rendered(t *testing.T, release render.Release) map[string]*unstructured.Unstructured {
	t.Helper()
	made, err := render.Chart(release)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, object := range made.All() {
		id := strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, " ")
		if found[id] != nil {
			t.Errorf("%s is rendered twice", id)
		}
		found[id] = object
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

// With namespaces, each rule of the controller's ClusterRole is in it or in the Role of each namespace, and no rule
// about a namespaced resource is left for the whole cluster.
func TestRender_ForNamespaces(t *testing.T) {
	narrow := render.Default().With("namespaces", []any{"team-a", "team-b"})
	before, after := rendered(t, render.Default()), rendered(t, narrow)
	all := rulesOf(t, before["ClusterRole  lockstep-controller"])
	wide := rulesOf(t, after["ClusterRole  lockstep-controller"])
	for _, namespace := range []string{"team-a", "team-b"} {
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
			if !slices.Contains(clusterScoped(), fmt.Sprint(resource)) {
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

// clusterScoped are the resources of the controller's role that have no namespace. A policy asks for the last in the
// whole cluster.
func clusterScoped() []string {
	return []string{
		"clustertrainingruntimes",
		"namespaces",
		"nodes",
		"priorityclasses",
		"deviceclasses",
		"tokenreviews",
		"subjectaccessreviews",
		"mutatingwebhookconfigurations",
		"validatingwebhookconfigurations",
		"runtimesnapshots",
	}
}

// webhooksOf checks that webhooks are called for these namespaces only, and for nothing that has none.
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

// An installation that takes over has the right to the other lease in its namespace, and sets the controller's flag,
// also when it is rendered again.
func TestRender_TakesOver(t *testing.T) {
	objects := rendered(t, render.Default().With("takeOver", "kubeflow"))
	for _, kind := range []string{"Role", "RoleBinding"} {
		if objects[kind+" kubeflow lockstep-controller-take-over"] == nil {
			t.Errorf("there is no %s in the namespace of Kubeflow Trainer", kind)
		}
	}
	deployment := fmt.Sprint(objects["Deployment lockstep-system lockstep-controller"].Object)
	if want := "--gang-default=on --take-over=kubeflow]"; !strings.Contains(deployment, want) {
		t.Errorf("the Deployment has not the arguments %q:\n%s", want, deployment)
	}
	if len(rulesOf(t, objects["ClusterRole  lockstep-controller"])) !=
		len(rulesOf(t, rendered(t, render.Default())["ClusterRole  lockstep-controller"])) {
		t.Error("the rights are not those of an installation that takes nothing over")
	}
}

// The controller caches the resources that its role permits it to list, and only namespaced ones.
func TestWatched(t *testing.T) {
	for api, gangs := range map[gangapi.API]string{
		gangapi.Native:    "workloads.scheduling.k8s.io podgroups.scheduling.k8s.io",
		gangapi.Resources: "podgroups.scheduling.lockstep.dev",
	} {
		found, err := chart.Watched(api)
		if err != nil {
			t.Fatal(err)
		}
		want := "trainjobs.trainer.kubeflow.org trainingruntimes.trainer.kubeflow.org jobsets.jobset.x-k8s.io " +
			"computedomains.resource.nvidia.com configmaps " + gangs
		var got []string
		for _, resource := range found {
			got = append(got, resource.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: it caches %v, want %s", api, got, want)
		}
	}
}

// An installation that names the API of gangs gets no right for the other one; with rights for both, discovery decides
// at the first start.
func TestRender_ForOneAPIOfGangs(t *testing.T) {
	const native, resources = "scheduling.k8s.io/podgroups", "scheduling.lockstep.dev/podgroups"
	for _, c := range []struct {
		api  gangapi.API
		want []string
	}{{"auto", []string{native, resources}}, {gangapi.Native, []string{native}}, {gangapi.Resources, []string{resources}}} {
		objects := rendered(t, render.Default().With("gangApi", string(c.api)))
		for id, object := range objects {
			if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
				continue
			}
			found := map[string]bool{}
			for _, rule := range rulesOf(t, object) {
				verbs, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "verbs")
				if slices.Equal(verbs, []string{"list", "watch"}) {
					continue // the scheduler may read native groups as those of another controller
				}
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
		for _, name := range []string{"lockstep-controller", "lockstep-scheduler"} {
			arguments := fmt.Sprint(objects["Deployment lockstep-system "+name])
			if got := strings.Contains(arguments, "--gang-api="+string(c.api)); got != (c.api != "auto") {
				t.Errorf("api %q: %s is told: %t", c.api, name, got)
			}
		}
	}
}

// Beside Kubeflow Trainer, its jobs do not depend on Lockstep's webhooks, which only choose among those that are new.
func TestRender_BesideAsksAboutChosenJobs(t *testing.T) {
	conditions := func(manage string) map[string]string {
		found := map[string]string{}
		for _, object := range rendered(t, render.Default().With("manage", manage)) {
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
	got := conditions("chosen")
	if len(got) != 2 || !strings.HasSuffix(got["validator.trainjob.trainer.kubeflow.org"], "object"+ours) ||
		!strings.HasPrefix(got["defaulter.trainjob.trainer.kubeflow.org"], "request.operation == 'CREATE' || ") ||
		!strings.HasSuffix(got["defaulter.trainjob.trainer.kubeflow.org"], "oldObject"+ours) {
		t.Errorf("beside, the conditions are %v", got)
	}
	if alone := conditions("all"); len(alone) > 0 {
		t.Errorf("alone, webhooks have conditions: %v", alone)
	}
}

func asSlice(value any) []any {
	slice, _ := value.([]any)
	return slice
}

// The scheduler may write the status of foreign groups only where a dialect names one.
func TestRender_StatusOfForeignGroups(t *testing.T) {
	row := func(name string, status map[string]any) map[string]any {
		return map[string]any{
			"name": name, "member": map[string]any{"labels": []any{name}}, "minimum": "1", "status": status,
			"object": map[string]any{"resource": name + ".v1.example.com"},
		}
	}
	rows := []any{row("silent", nil), row("telling", map[string]any{"phase": "gang.phase"})}
	objects := rendered(t, render.Default().With("scheduler.pluginArgs", map[string]any{
		"GangPlacement": map[string]any{"dialects": rows},
	}))
	rules := fmt.Sprint(rulesOf(t, objects["ClusterRole  lockstep-scheduler"]))
	for resource, want := range map[string]bool{"silent/status": false, "telling/status": true, "podgroups/status": true} {
		if got := strings.Contains(rules, "resources:["+resource+"] verbs:[patch]"); got != want {
			t.Errorf("%s: it may patch it: %t", resource, got)
		}
	}
}

// helm upgrade --reuse-values has the values of the release before, which did not know the newest of them.
func TestRender_ValuesOfAnOlderRelease(t *testing.T) {
	older := render.Default().With("scheduler.aliases", nil).With("neighbors", nil).
		With("systemPriorities", nil).With("podSecurityContext", nil)
	before, after := rendered(t, older), rendered(t, render.Default())
	if diff := cmp.Diff(after, before); diff != "" {
		t.Errorf("values of an older release render something else (-shipped +older):\n%s", diff)
	}
}
