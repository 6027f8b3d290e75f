package dra_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/dra"
)

// TestDemand_FaultsAreSentences: a claim that cannot be evaluated gives a sentence, not an error, and other claims are
// answered as before.
func TestDemand_FaultsAreSentences(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	fleet := dra.Fleet{
		Inventory: dra.NewInventory(sample(t, "h100-node.yaml"), node("h100-000")),
		Ledger:    dra.NewLedger(),
	}
	for _, c := range []struct {
		name  string
		claim *resourcev1.ResourceClaim
		want  string
	}{
		{
			"a class that is missing", claim("train", "gpu 1 gpu.nvidia.co"),
			`request gpu of claim train: device class "gpu.nvidia.co" does not exist; create it or name another`,
		},
		{
			"a selector that does not compile", claim("train", "gpu 1 gpu.nvidia.com|device.attributez"),
			`request gpu: the selector "device.attributez" of request gpu does not compile: ` +
				`ERROR: <input>:1:7: undefined field 'attributez'`,
		},
		{
			"a selector that is no condition", claim("train", `gpu 1 gpu.nvidia.com|"yes"`),
			`request gpu: the selector "\"yes\"" of request gpu does not compile: must evaluate to bool or the unknown type, not string`,
		},
		{
			"more devices than a claim can have", claim("train", "a 20 gpu.nvidia.com", "b 13 gpu.nvidia.com"),
			"request b is one too many: a claim can have at most 32 devices; divide it",
		},
		{
			"a selector that fails", claim("train", `gpu 1 gpu.nvidia.com|device.attributes["gpu.nvidia.com"].color == "red"`),
			`request gpu: the selector "device.attributes[\"gpu.nvidia.com\"].color == \"red\"" of request gpu fails: no such key: color`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fit, err := f.Fit(t.Context(), fleet, "h100-000", f.Demand(lookup, c.claim))
			if err != nil || fit.Pods != 0 || fit.Rule != c.want {
				t.Errorf("got  %d: %s, %v\nwant 0: %s", fit.Pods, fit.Rule, err, c.want)
			}
			fit, err = f.Fit(t.Context(), fleet, "h100-000", f.Demand(lookup, claim("other", "gpu 8 gpu.nvidia.com")))
			if err != nil || fit.Pods != 1 {
				t.Errorf("another claim: %+v, %v", fit, err)
			}
		})
	}
}

// TestDemand_EqualClaimsAreOne: claims that ask for the same are one demand, whatever their names.
func TestDemand_EqualClaimsAreOne(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	a := f.Demand(lookup, claim("worker-0", "gpu 4 gpu.nvidia.com"))
	b := f.Demand(lookup, claim("worker-1", "gpu 4 gpu.nvidia.com"))
	c := f.Demand(lookup, claim("worker-2", "gpu 5 gpu.nvidia.com"))
	if !a.Same(b) || a.Same(c) {
		t.Errorf("same: %v, other: %v", a.Same(b), a.Same(c))
	}
}

// objects are those that the pods of a test refer to.
type objects struct {
	claims    []*resourcev1.ResourceClaim
	templates []*resourcev1.ResourceClaimTemplate
	extended  map[corev1.ResourceName]*resourcev1.DeviceClass
}

func (o objects) Claim(_, name string) *resourcev1.ResourceClaim {
	for _, c := range o.claims {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (o objects) Template(_, name string) *resourcev1.ResourceClaimTemplate {
	for _, c := range o.templates {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (o objects) Class(name string) *resourcev1.DeviceClass { return lookup(name) }

func (o objects) Extended(name corev1.ResourceName) *resourcev1.DeviceClass { return o.extended[name] }

func pod(claims ...corev1.PodResourceClaim) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w-0", UID: "w-0"}}
	p.Spec.ResourceClaims = claims
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("train")}
	return p
}

// TestDemand_ClaimsOfAPod covers the ways in which a pod gets claims.
func TestDemand_ClaimsOfAPod(t *testing.T) {
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "gpus"}}
	template.Spec.Spec = claim("", "gpu 4 gpu.nvidia.com").Spec
	placed := holder("placed", "gpu.nvidia.com/x/gpu-0")
	placed.Status.Allocation.NodeSelector = &corev1.NodeSelector{}
	going := claim("going", "gpu 1 gpu.nvidia.com")
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	theirs := claim("theirs", "gpu 1 gpu.nvidia.com")
	o := objects{
		claims:    []*resourcev1.ResourceClaim{placed, going, theirs, claim("fabric", "domain 1 fabric.example.com")},
		templates: []*resourcev1.ResourceClaimTemplate{template},
	}
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train"}}
	group.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{
		{Name: "all", ResourceClaimTemplateName: new("gpus")}, {Name: "fabric", ResourceClaimName: new("fabric")},
	}
	made := pod(corev1.PodResourceClaim{Name: "own", ResourceClaimTemplateName: new("gpus")})
	made.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "own", ResourceClaimName: new("theirs")}}
	unneeded := pod(corev1.PodResourceClaim{Name: "own", ResourceClaimTemplateName: new("gpus")})
	unneeded.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "own"}}
	for _, c := range []struct {
		name                   string
		pod                    *corev1.Pod
		own, shared, selectors int
		fault                  string
	}{
		{"no claims", pod(), 0, 0, 0, ""},
		{"a claim that will be made of a template", pod(corev1.PodResourceClaim{
			Name: "own", ResourceClaimTemplateName: new("gpus"),
		}), 1, 0, 0, ""},
		{"a claim of the group, also of a template", pod(corev1.PodResourceClaim{
			Name: "all", ResourceClaimTemplateName: new("gpus"),
		}), 0, 1, 0, ""},
		{"a claim of the group", pod(corev1.PodResourceClaim{Name: "fabric", ResourceClaimName: new("fabric")}), 0, 1, 0, ""},
		{"two names for one claim", pod(
			corev1.PodResourceClaim{Name: "fabric", ResourceClaimName: new("fabric")},
			corev1.PodResourceClaim{Name: "again", ResourceClaimName: new("fabric")}), 0, 1, 0, ""},
		{"a claim that is allocated", pod(corev1.PodResourceClaim{Name: "x", ResourceClaimName: new("placed")}), 0, 0, 1, ""},
		{"a claim that was found unneeded", unneeded, 0, 0, 0, ""},
		{
			"a claim that is being deleted", pod(corev1.PodResourceClaim{Name: "x", ResourceClaimName: new("going")}),
			0, 0, 0, "claim going is being deleted",
		},
		{
			"a claim that is missing", pod(corev1.PodResourceClaim{Name: "x", ResourceClaimName: new("nowhere")}),
			0, 0, 0, "claim nowhere does not exist; pod w-0 refers to it as x",
		},
		{
			"a template that is missing", pod(corev1.PodResourceClaim{Name: "x", ResourceClaimTemplateName: new("nowhere")}),
			0, 0, 0, "claim template nowhere does not exist; pod w-0 refers to it as x",
		},
		{"a claim of somebody else", made, 0, 0, 0, "ResourceClaim ml/theirs was not created for Pod ml/w-0 (Pod is not owner)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := dra.NewFitter(dra.DefaultFeatures(), 0).ReadPod(o, c.pod, group)
			if got.Demand.Fault != c.fault {
				t.Fatalf("fault %q, want %q", got.Demand.Fault, c.fault)
			}
			if len(got.Demand.Claims) != c.own || len(got.Shared) != c.shared || len(got.Selectors) != c.selectors {
				t.Errorf("%d own, %d shared, %d selectors", len(got.Demand.Claims), len(got.Shared), len(got.Selectors))
			}
		})
	}
}

func container(gpus string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"nvidia.com/gpu": resource.MustParse(gpus), "cpu": resource.MustParse("1"),
	}}}
}

// TestExtendedResources: a pod that asks for nvidia.com/gpu gets devices where the node has slices, and none from us
// where a device plugin offers the resource.
func TestExtendedResources(t *testing.T) {
	o := objects{extended: dra.ResourceClasses(standard())}
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	plugin := node("plugin")
	plugin.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	fleet := dra.Fleet{
		Inventory: dra.NewInventory(
			sample(t, "h100-node.yaml"),
			node("h100-000"),
			plugin,
			node("bare"),
		),
		Ledger: dra.NewLedger(),
	}
	sidecar := container("1")
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	implicit := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"deviceclass.resource.kubernetes.io/dranet.net": resource.MustParse("3"),
	}}}
	for _, c := range []struct {
		name       string
		init       []corev1.Container
		containers []corev1.Container
		want       [3]int
	}{
		{"one container", nil, []corev1.Container{container("3")}, [3]int{2, dra.MostPods, 0}},
		{"two containers", nil, []corev1.Container{container("3"), container("1")}, [3]int{2, dra.MostPods, 0}},
		{
			"a sidecar stays",
			[]corev1.Container{sidecar},
			[]corev1.Container{container("2"), container("1")},
			[3]int{2, dra.MostPods, 0},
		},
		{
			"what ends early uses what comes later",
			[]corev1.Container{container("4"), container("2")},
			[]corev1.Container{container("2"), container("1")},
			[3]int{2, dra.MostPods, 0},
		},
		{
			"but not the sidecar before it",
			[]corev1.Container{sidecar, container("4")},
			[]corev1.Container{container("3")},
			[3]int{1, dra.MostPods, 0},
		},
		{"the resource made of the class's name", nil, []corev1.Container{implicit}, [3]int{2, 0, 0}},
		{"both", nil, []corev1.Container{container("4"), implicit}, [3]int{2, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pod()
			p.Spec.InitContainers, p.Spec.Containers = c.init, c.containers
			d := f.ReadPod(o, p, nil).Demand
			var got [3]int
			for i, n := range []string{"h100-000", "plugin", "bare"} {
				fit, err := f.Fit(t.Context(), fleet, n, d)
				if err != nil || d.Fault != "" {
					t.Fatal(d.Fault, err)
				}
				got[i] = fit.Pods
			}
			if got != c.want {
				t.Errorf("got %v, want %v (%v)", got, c.want, d.Claims[0].Spec.Devices.Requests)
			}
		})
	}
}
