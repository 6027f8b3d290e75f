// Package probe asks an API server what it keeps of the gang objects that Lockstep's manifests and controllers write.
//
// The gang API of Kubernetes 1.37 stands behind gates that are off by default, and an API server whose gate is off
// drops the gated fields without a word. So both binaries ask before they start: discovery says whether PodGroups are
// served, and a dry-run create says which of their fields survive.
package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Mode says how much of the gang API a cluster offers.
type Mode string

const (
	// Full is a cluster that keeps PodGroups with their topology constraints and their shared resource claims.
	Full Mode = "full"
	// Groups is a cluster that keeps PodGroups, but not all of their gated fields: everything works but claims shared
	// by a PodGroup.
	Groups Mode = "groups"
	// None is a cluster that serves no PodGroups: gangs cannot be placed there.
	None Mode = "none"
)

// The feature gates of the API server, in the order in which they depend on each other.
const (
	gateGroups      = "GenericWorkload"
	gateConstraints = "TopologyAwareWorkloadScheduling"
	gateClaims      = "DRAWorkloadResourceClaims"
)

// computeDomains is the group and version of the kind with which NVIDIA's DRA driver connects nodes by NVLink.
const computeDomains = "resource.nvidia.com/v1beta1"

// Offer is what one cluster offers: which of the three gates are on at its API server, and whether NVLink can be had.
type Offer struct {
	Mode Mode
	// Off lists the gates that are off, in dependency order; empty in mode Full.
	Off []string
	// ComputeDomains says that NVIDIA's DRA driver connects nodes by NVLink there. It has nothing to do with the mode.
	ComputeDomains bool
}

// Constraints reports whether the API server keeps a PodGroup's topology constraints.
func (o Offer) Constraints() bool { return o.on(gateConstraints) }

// Claims reports whether the API server keeps a PodGroup's shared resource claims.
func (o Offer) Claims() bool { return o.on(gateClaims) }

func (o Offer) on(gate string) bool { return o.Mode != None && !slices.Contains(o.Off, gate) }

// Missing is one line that names what is off and how to switch it on; empty in mode Full.
func (o Offer) Missing() string {
	if o.Mode == Full {
		return ""
	}
	gates := make([]string, len(o.Off))
	for i, gate := range o.Off {
		gates[i] = gate + "=true"
	}
	what := "the API server drops " + strings.Join(o.Off, " and ") + " fields"
	if o.Mode == None {
		what = "the API server does not serve PodGroups (scheduling.k8s.io/v1beta1)"
	}
	return fmt.Sprintf(
		"%s; start kube-apiserver and kube-controller-manager with --feature-gates=%s and kube-apiserver "+
			"with --runtime-config=scheduling.k8s.io/v1beta1=true",
		what,
		strings.Join(gates, ","),
	)
}

// Cluster probes the API server behind client with a dry-run create in namespace, which must exist and in which the
// caller may create podgroups. Nothing is stored. An error is a fault (no connection, no permission), not an answer.
func Cluster(ctx context.Context, client kubernetes.Interface, namespace string) (Offer, error) {
	none := Offer{Mode: None, Off: []string{gateGroups, gateConstraints, gateClaims}}
	groups, err := serves(client, schedulingv1beta1.SchemeGroupVersion.String(), "podgroups")
	if err != nil || !groups {
		return none, err
	}
	domains, err := serves(client, computeDomains, "computedomains")
	if err != nil {
		return Offer{}, err
	}
	kept, err := client.SchedulingV1beta1().PodGroups(namespace).
		Create(ctx, question(namespace), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return Offer{}, fmt.Errorf("creating a PodGroup in namespace %s as a dry run: %w", namespace, err)
	}
	offer := answer(kept)
	offer.ComputeDomains = domains
	return offer, nil
}

// serves reports whether the API server serves a resource.
func serves(client kubernetes.Interface, version, resource string) (bool, error) {
	found, err := client.Discovery().ServerResourcesForGroupVersion(version)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discovering %s: %w", version, err)
	}
	return slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }), nil
}

// question is a PodGroup that uses every gated field that Lockstep relies on.
func question(namespace string) *schedulingv1beta1.PodGroup {
	claim := "lockstep-probe"
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "lockstep-probe", Namespace: namespace},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1},
			},
			SchedulingConstraints: &schedulingv1beta1.PodGroupSchedulingConstraints{
				Topology: []schedulingv1beta1.TopologyConstraint{{Key: "kubernetes.io/hostname"}},
			},
			ResourceClaims: []schedulingv1beta1.PodGroupResourceClaim{{Name: claim, ResourceClaimTemplateName: &claim}},
		},
	}
}

func answer(kept *schedulingv1beta1.PodGroup) Offer {
	offer := Offer{Mode: Full}
	if kept.Spec.SchedulingConstraints == nil || len(kept.Spec.SchedulingConstraints.Topology) == 0 {
		offer.Off = append(offer.Off, gateConstraints)
	}
	if len(kept.Spec.ResourceClaims) == 0 {
		offer.Off = append(offer.Off, gateClaims)
	}
	if len(offer.Off) > 0 {
		offer.Mode = Groups
	}
	return offer
}
