package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// Each value has the effect that values.yaml documents: some object has a text, or an object is there or is not.
func TestChart_EachValueDoesSomething(t *testing.T) {
	const (
		controller = "Deployment lockstep-system lockstep-controller"
		scheduler  = "Deployment lockstep-system lockstep-scheduler"
		profile    = "ConfigMap lockstep-system lockstep-scheduler"
		torch      = "ClusterTrainingRuntime  torch-distributed"
		deepspeed  = "ClusterTrainingRuntime  deepspeed-distributed"
		digest     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	)
	shipped := rendered(t, render.Default())
	for _, c := range []struct {
		path   string
		value  any
		object string
		// has is a text that only the changed object has; empty if the value removes the object, or adds it.
		has string
	}{
		{"image.registry", "registry.example.com/gangs/", scheduler, "image:registry.example.com/gangs/lockstep-scheduler:"},
		{"image.tag", "v9", controller, "image:lockstep-controller:v9"},
		{"image.digests", map[string]any{"lockstep-controller": digest}, controller, "image:lockstep-controller@" + digest},
		{"image.pullPolicy", "Always", scheduler, "imagePullPolicy:Always"},
		{"image.pullSecrets", []any{map[string]any{"name": "mine"}}, controller, "imagePullSecrets:[map[name:mine]]"},
		{"commonLabels", map[string]any{"team": "ml"}, torch, "team:ml"},
		{"gangs.default", "off", controller, "--gang-default=off"},
		{"gangApi", "resources", scheduler, "--gang-api=resources"},
		{"manage", "chosen", controller, "--manage=chosen"},
		{"manager.replicas", 5, controller, "replicas:5"},
		{"manager.config.statusServer.qps", 7, "ConfigMap lockstep-system lockstep-controller", "qps: 7"},
		{"manager.config.webhook.port", 10250, controller, "containerPort:10250 name:webhook]"},
		{"manager.config.statusServer.port", 11443, controller, "containerPort:11443 name:status-server]"},
		{"manager.config.metrics.bindAddress", ":9090", controller, "containerPort:9090 name:metrics]"},
		{"manager.config.metrics.bindAddress", ":9090", "Service lockstep-system lockstep-controller-webhook", "name:metrics port:9090"},
		{"manager.config.health.healthProbeBindAddress", "0.0.0.0:9091", controller, "containerPort:9091 name:health]"},
		// Pods are told this port of the Service.
		{
			"manager.config.statusServer.port", 11443, "Service lockstep-system lockstep-controller-webhook",
			"name:status-server port:11443",
		},
		{"manager.args", []any{"--workers=3"}, controller, "--workers=3"},
		{"manager.args", []any{"--kueue-check-after=2m"}, "ClusterRole  lockstep-controller-kueue", ""},
		{"manager.nodeSelector", map[string]any{"pool": "system"}, controller, "nodeSelector:map[pool:system]"},
		{"manager.volumeMounts", []any{map[string]any{"name": "x", "mountPath": "/x"}}, controller, "mountPath:/x"},
		{"manager.enabled", false, controller, ""},
		{"manager.enabled", false, torch, ""},
		{"manager.enabled", false, "ValidatingWebhookConfiguration  lockstep-validator.trainer.kubeflow.org", ""},
		{"manager.enabled", false, "Secret lockstep-system lockstep-webhook-cert", ""},
		{"scheduler.clientConnection.qps", 70, profile, "qps: 70"},
		{"scheduler.pluginArgs", map[string]any{"GangPlacement": map[string]any{"accelerators": []any{"example.com/npu"}}}, profile, "- example.com/npu"},
		{"scheduler.pluginArgs", map[string]any{"NodeResourcesFit": map[string]any{"ignoredResources": []any{"a.b/c"}}}, profile, "name: NodeResourcesFit"},
		{"scheduler.args", []any{"--v=4"}, scheduler, "--v=4"},
		{"scheduler.tolerations", []any{map[string]any{"key": "dedicated"}}, scheduler, "tolerations:[map[key:dedicated]]"},
		{"neighbors.demand.mode", "gangs", profile, "mode: gangs"},
		{"neighbors.demand.mode", "gangs", "ClusterRole  lockstep-scheduler", "provisioningrequests"},
		{"neighbors.nodes.complete", true, controller, "--nodes-complete"},
		{"neighbors.nodes.shapes", []any{map[string]any{"nvidia.com/gpu": 8, "cpu": "96"}}, controller, "--node-shape=cpu=96,nvidia.com/gpu=8"},
		{"neighbors.pods.offAccelerators", true, "MutatingAdmissionPolicy  cpupods.lockstep.dev", ""},
		{"neighbors.pods.byLockstep", true, "MutatingAdmissionPolicy  acceleratorpods.lockstep.dev", ""},
		{"neighbors.demand.mode", "none", profile, "mode: none"},
		{"webhook.failurePolicy", "Ignore", "MutatingWebhookConfiguration  lockstep-defaulter.trainer.kubeflow.org", "failurePolicy:Ignore"},
		{"runtimes.defaultEnabled", false, torch, ""},
		{"runtimes.deepspeedDistributed.image", map[string]any{"registry": "r.example.com", "tag": "v7"}, deepspeed, "image:r.example.com/kubeflow/trainer/deepspeed-runtime:v7"},
		{"runtimes.torchtuneDistributed.image", map[string]any{"tag": "v7"}, "ClusterTrainingRuntime  torchtune-qwen2.5-1.5b", "torchtune-trainer:v7"},
		{"dataCache.enabled", false, "ClusterTrainingRuntime  torch-distributed-with-cache", ""},
		{"dataCache.namespaces", []any{"vision"}, "ServiceAccount vision kubeflow-trainer-cache-initializer", ""},
		{"sdk.enabled", false, "ConfigMap kubeflow-system kubeflow-trainer-public", ""},
		{"priorityClassName", "system-cluster-critical", "PriorityClass  lockstep", ""},
		{"priorityClassName", "urgent", "ValidatingAdmissionPolicy  componentpriorities.lockstep.dev", ""},
		{"priorityClassName", "urgent", "ValidatingAdmissionPolicyBinding  componentpriorities.lockstep.dev", ""},
		{"priorityClassName", "system-cluster-critical", scheduler, "priorityClassName:system-cluster-critical"},
		{"podSecurityContext.runAsUser", 700000, scheduler, "runAsUser:700000"},
		{"podSecurityContext.runAsGroup", 0, controller, "runAsGroup:0"},
		{"networkPolicy.enabled", false, "NetworkPolicy lockstep-system lockstep-scheduler", ""},
		{"serviceMonitor.dashboard", true, "ConfigMap lockstep-system lockstep-dashboard", ""},
		{"serviceMonitor.enabled", true, "ServiceMonitor lockstep-system lockstep-scheduler", ""},
	} {
		before := shipped[c.object]
		after := rendered(t, render.Default().With(c.path, c.value))[c.object]
		switch {
		case c.has == "" && (before == nil) == (after == nil):
			t.Errorf("%s=%v: %s is there as before: %t", c.path, c.value, c.object, before != nil)
		case c.has == "":
		case before == nil || after == nil:
			t.Errorf("%s=%v: there is no %s", c.path, c.value, c.object)
		case strings.Contains(fmt.Sprint(before.Object), c.has):
			t.Errorf("%s=%v: %s has %q without", c.path, c.value, c.object, c.has)
		case !strings.Contains(fmt.Sprint(after.Object), c.has):
			t.Errorf("%s=%v: %s has no %q: %v", c.path, c.value, c.object, c.has, after.Object)
		}
	}
}

// The rights for Kueue's AdmissionChecks are there with the flag only, and those on Workloads in the namespaces only.
func TestChart_RightsForKueue(t *testing.T) {
	for id := range rendered(t, render.Default()) {
		if strings.Contains(id, "lockstep-controller-kueue") {
			t.Errorf("%s is there without --kueue-check-after", id)
		}
	}
	asked := render.Default().With("manager.args", []any{"--kueue-check-after=2m"})
	const cluster, own = "ClusterRole  lockstep-controller-kueue", "Role team-a lockstep-controller-kueue"
	for name, c := range map[string]struct {
		of              render.Release
		everywhere, own bool
	}{
		"all namespaces": {asked, true, false},
		"one namespace":  {asked.With("namespaces", []any{"team-a"}), false, true},
	} {
		objects := rendered(t, c.of)
		if got := strings.Contains(fmt.Sprint(objects[cluster].Object), "workloads/status"); got != c.everywhere {
			t.Errorf("%s: Workloads are written everywhere: %t", name, got)
		}
		role := objects[own]
		if got := role != nil && strings.Contains(fmt.Sprint(role.Object), "workloads/status"); got != c.own {
			t.Errorf("%s: Workloads are written in the namespace: %t", name, got)
		}
	}
}

// One runtime can be had without the others, and the scheduler without the controller retains its policies.
func TestChart_Parts(t *testing.T) {
	one := rendered(t, render.Default().With("runtimes.defaultEnabled", false).With("dataCache.enabled", false).
		With("runtimes.torchtuneDistributed.llama3_2_1B.enabled", true))
	var runtimes []string
	for id, object := range one {
		if object.GetKind() == "ClusterTrainingRuntime" {
			runtimes = append(runtimes, id)
		}
	}
	if len(runtimes) != 1 || !strings.HasSuffix(runtimes[0], "torchtune-llama3.2-1b") {
		t.Errorf("the runtimes are %v", runtimes)
	}
	alone := rendered(t, render.Default().With("manager.enabled", false))
	for _, id := range []string{
		"ValidatingAdmissionPolicy  gangtimes.lockstep.dev", "ValidatingAdmissionPolicy  gangpriorities.lockstep.dev",
		"ValidatingAdmissionPolicy  gangmembers.lockstep.dev", "Lease lockstep-system lockstep-scheduler",
		"ConfigMap lockstep-system lockstep-gang-api", "ClusterRole  lockstep-metrics-reader",
		"PriorityClass  lockstep", "ValidatingAdmissionPolicy  componentpriorities.lockstep.dev",
	} {
		if alone[id] == nil {
			t.Errorf("without the controller there is no %s", id)
		}
	}
	for id := range alone {
		if strings.Contains(id, "lockstep-controller") {
			t.Errorf("without the controller there is %s", id)
		}
	}
}

// Hooks exist as the values set, for the time of an action, and fit the strictest of the Pod Security Standards, as all
// pods do.
func TestChart_PodsHaveNoPrivileges(t *testing.T) {
	made, err := render.Chart(render.Default())
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, object := range append(made.All(), made.Hooks...) {
		if kind := object.GetKind(); kind != "Deployment" && kind != "Job" {
			continue
		}
		pods++
		text := fmt.Sprint(object.Object)
		for _, want := range []string{
			"runAsNonRoot:true", "runAsUser:65532", "seccompProfile:map[type:RuntimeDefault]", "allowPrivilegeEscalation:false",
			"readOnlyRootFilesystem:true", "capabilities:map[drop:[ALL]]",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s %s has no %s", object.GetKind(), object.GetName(), want)
			}
		}
	}
	if pods != 3 {
		t.Errorf("%d Deployments and Jobs, want two and the Job after the removal", pods)
	}
	none, err := render.Chart(render.Default().With("hooks.cleanup", false))
	if err != nil || len(none.Hooks) > 0 {
		t.Errorf("without hooks there are %d (%v)", len(none.Hooks), err)
	}
}

// OpenShift gives pods a user of their namespace's range, and by default refuses pods that name another one. All other
// restrictions stay, and each of the two can be left to the cluster alone.
func TestChart_PodsOfTheClustersUser(t *testing.T) {
	const user, group = "runAsUser:65532", "runAsGroup:65532"
	shipped := render.Default()
	unset := shipped.With("podSecurityContext.runAsUser", nil)
	for name, c := range map[string]struct {
		values      render.Release
		user, group string
	}{
		"default":                    {shipped, user, group},
		"values of an older release": {shipped.With("podSecurityContext", nil), user, group},
		"the cluster's user":         {unset, "", group},
		"the cluster's of both":      {unset.With("podSecurityContext.runAsGroup", nil), "", ""},
	} {
		made, err := render.Chart(c.values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range append(made.All(), made.Hooks...) {
			if kind := object.GetKind(); kind != "Deployment" && kind != "Job" {
				continue
			}
			text := fmt.Sprint(object.Object)
			for field, want := range map[string]string{"runAsUser:": c.user, "runAsGroup:": c.group} {
				if got := strings.Contains(text, field); got != (want != "") || !strings.Contains(text, want) {
					t.Errorf("%s: %s has a %s %t, want %q: %s", name, object.GetName(), field, got, want, text)
				}
			}
			if !strings.Contains(text, "runAsNonRoot:true") {
				t.Errorf("%s: %s may run as root: %s", name, object.GetName(), text)
			}
		}
	}
}
