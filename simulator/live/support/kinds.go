package support

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels that select objects of the installation: ours those that the chart installs, and programs its running
// programs, with JobSet where that is in the same namespace. Other objects of the namespace may belong to other users.
const (
	ours     = "app.kubernetes.io/part-of=lockstep"
	programs = "app.kubernetes.io/name in (lockstep-scheduler,lockstep-controller,lockstep-crds,lockstep-cleanup,jobset)"
)

// most is the largest number of objects of a kind in a bundle.
const most = 2000

// kind is a kind of objects that a bundle has.
type kind struct {
	schema.GroupVersionResource
	// inside restricts it to the namespaces of the installation.
	inside bool
	// labels and fields select among its objects; empty selects all.
	labels, fields string
	// installed is set for objects of the installation, whose arguments are flags and no secrets.
	installed bool
}

// groups are the API groups whose CRDs are in a bundle, and their subgroups.
func groups() []string {
	return []string{"lockstep.dev", "kubeflow.org", "x-k8s.io", "nvidia.com"}
}

// kinds returns the kinds of a bundle beside those of a snapshot.
func kinds() []kind {
	var all []kind
	add := func(of kind, group, version string, resources ...string) {
		for _, resource := range resources {
			of.GroupVersionResource = schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
			all = append(all, of)
		}
	}
	running := kind{inside: true, installed: true, labels: programs}
	add(running, "", "v1", "pods", "services")
	add(running, "apps", "v1", "deployments", "replicasets")
	add(running, "discovery.k8s.io", "v1", "endpointslices")
	installation := kind{inside: true, installed: true, labels: ours}
	add(installation, "", "v1", "configmaps", "serviceaccounts")
	add(installation, "batch", "v1", "jobs")
	add(installation, "coordination.k8s.io", "v1", "leases")
	add(installation, "policy", "v1", "poddisruptionbudgets")
	add(installation, "networking.k8s.io", "v1", "networkpolicies")
	add(installation, "rbac.authorization.k8s.io", "v1", "roles", "rolebindings")
	add(kind{inside: true, installed: true}, "", "v1", "events")

	released := kind{installed: true, labels: ours}
	add(released, "rbac.authorization.k8s.io", "v1", "clusterroles", "clusterrolebindings")
	add(
		released,
		"admissionregistration.k8s.io",
		"v1",
		"validatingwebhookconfigurations",
		"mutatingwebhookconfigurations",
		"validatingadmissionpolicies",
		"validatingadmissionpolicybindings",
	)
	add(kind{}, "apiextensions.k8s.io", "v1", "customresourcedefinitions")

	for _, component := range []string{"lockstep-scheduler", "lockstep-controller"} {
		add(kind{fields: "reportingComponent=" + component}, "", "v1", "events")
	}
	add(kind{}, "jobset.x-k8s.io", "v1alpha2", "jobsets")
	add(kind{}, "state.lockstep.dev", "v1alpha1", "frozentrainjobs")
	add(
		kind{},
		"kueue.x-k8s.io",
		"v1beta2",
		"clusterqueues",
		"localqueues",
		"resourceflavors",
		"topologies",
		"workloads",
	)
	add(kind{}, "resource.nvidia.com", "v1beta1", "computedomains")
	return all
}

// file returns the name of the part with a kind's objects.
func (k kind) file() string {
	name := k.GroupResource().String()
	switch {
	case k.inside:
		name = "installation/" + name
	case k.fields != "":
		_, component, _ := strings.Cut(k.fields, "=")
		name += "-" + component
	}
	return "objects/" + name + ".yaml"
}
