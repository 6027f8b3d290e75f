// Package probe asks an API server which fields it stores of the gang objects that Lockstep's manifests and controllers
// write.
//
// The gang API of Kubernetes 1.37 stands behind gates that are off by default, and an API server whose gate is off
// drops the gated fields silently. So both binaries probe before they start: discovery shows whether PodGroups are
// served, and a dry-run create returns the fields that survive.
package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// Mode is the part of the gang API that a cluster offers.
type Mode string

const (
	// Resources is a cluster where PodGroups are custom resources: everything works but claims that the API server
	// shares, and the stock scheduler for gangs.
	Resources Mode = "resources"
	// Full is a cluster that stores PodGroups with their topology constraints and their shared resource claims.
	Full Mode = "full"
	// Groups is a cluster that stores PodGroups, but not all of their gated fields: everything works except claims
	// shared by a PodGroup.
	Groups Mode = "groups"
)

// API returns the API in which a cluster of the mode stores its gangs.
func (m Mode) API() gangapi.API {
	if m == Resources {
		return gangapi.Resources
	}
	return gangapi.Native
}

// The feature gates of the API server, in the order in which they depend on each other.
const (
	gateGroups      = "GenericWorkload"
	gateConstraints = "TopologyAwareWorkloadScheduling"
	gateClaims      = "DRAWorkloadResourceClaims"
)

// computeDomains is the group and version of the kind with which NVIDIA's DRA driver connects nodes by NVLink.
const computeDomains = "resource.nvidia.com/v1beta1"

// Offer is the offer of one cluster: the gates, of the three, that are on at its API server, and whether NVLink is
// available.
type Offer struct {
	Mode Mode
	// API is the API of the gangs, Former the other API if it is served: gangs may have been there.
	API, Former gangapi.API
	// Off lists the gates that are off, in dependency order; empty in mode Full.
	Off []string
	// DeviceTaintRules is set if the API server serves taints of devices, which a scheduler of this release follows if
	// it may.
	DeviceTaintRules bool
	// ComputeDomains is set if NVIDIA's DRA driver connects nodes by NVLink there. It is independent of the mode.
	ComputeDomains bool
}

// Constraints reports whether the API server stores a PodGroup's topology constraints.
func (o Offer) Constraints() bool { return o.on(gateConstraints) }

// Claims reports whether the API server stores a PodGroup's shared resource claims.
func (o Offer) Claims() bool { return o.on(gateClaims) }

func (o Offer) on(gate string) bool { return !slices.Contains(o.Off, gate) }

// Missing is one line with the features that the cluster lacks and the way to enable them; empty in mode Full.
func (o Offer) Missing() string {
	switch o.Mode {
	case Groups: // below
	case Full:
		return ""
	case Resources:
		return "gangs are custom resources (" + gangapi.Resources.Version().
			String() +
			"): the stock scheduler does not serve them, and " +
			"the claims of a runtime's scheduling are shared by at most 256 pods"
	}
	gates := make([]string, len(o.Off))
	for i, gate := range o.Off {
		gates[i] = gate + "=true"
	}
	return fmt.Sprintf(
		"the API server drops %s fields; start kube-apiserver and kube-controller-manager with --feature-gates=%s",
		strings.Join(o.Off, " and "),
		strings.Join(gates, ","),
	)
}

// Choice is which API of gangs is wanted: by a flag, and, with Remember, from an earlier start.
type Choice struct {
	// Wanted is empty for the remembered or the best one.
	Wanted gangapi.API
	// Remember stores the choice in a ConfigMap of the namespace; without it, nothing is read or written.
	Remember bool
}

// Cluster probes the API server behind client: discovery shows the API that can store gangs, and a dry-run create in
// namespace, which must exist and in which the caller may create podgroups, shows the fields of the native one that are
// stored. The error is a gangapi.ErrNoAPI, or a fault (no connection, no permission); the offer then has the findings
// so far.
func Cluster(ctx context.Context, client kubernetes.Interface, namespace string, choice Choice) (Offer, error) {
	var offer Offer
	var served gangapi.Served
	var err error
	for _, question := range []struct {
		version, resource string
		answer            *bool
	}{
		{gangapi.Native.Version().String(), gangapi.Plural, &served.Native},
		{gangapi.NativeV1.Version().String(), gangapi.Plural, &served.NativeV1},
		{gangapi.Resources.Version().String(), gangapi.Plural, &served.Resources},
		{computeDomains, "computedomains", &offer.ComputeDomains},
		{resourcev1.SchemeGroupVersion.String(), "devicetaintrules", &offer.DeviceTaintRules},
	} {
		if *question.answer, err = serves(client, question.version, question.resource); err != nil {
			return Offer{}, err
		}
	}
	if offer.API, err = choice.choose(ctx, client, namespace, served); err != nil {
		return offer, err
	}
	offer.Former = served.Former(offer.API)
	if offer.API == gangapi.Resources {
		offer.Mode, offer.Off = Resources, []string{gateGroups, gateConstraints, gateClaims}
		return offer, nil
	}
	kept, err := kept(ctx, client, question(namespace), offer.API)
	if err != nil {
		return offer, fmt.Errorf("creating a PodGroup in namespace %s as a dry run: %w", namespace, err)
	}
	offer.Mode, offer.Off = answer(kept)
	return offer, nil
}

func (c Choice) choose(
	ctx context.Context, client kubernetes.Interface, namespace string, served gangapi.Served,
) (gangapi.API, error) {
	var remembered gangapi.API
	var err error
	if c.Remember {
		if remembered, err = gangapi.Remembered(ctx, client, namespace); err != nil {
			return "", err
		}
	}
	api, err := gangapi.Choose(c.Wanted, remembered, served)
	if err != nil || !c.Remember {
		return api, err
	}
	return gangapi.Remember(ctx, client, namespace, api, c.Wanted)
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

// kept returns the PodGroup that the API server would store. The client's Go types are of the first version; a later
// one takes the same JSON.
func kept(
	ctx context.Context, client kubernetes.Interface, group *schedulingv1beta1.PodGroup, api gangapi.API,
) (*schedulingv1beta1.PodGroup, error) {
	groups := client.SchedulingV1beta1()
	if api == gangapi.Native {
		made, err := groups.PodGroups(group.Namespace).
			Create(ctx, group, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return made, err //nolint:wrapcheck // the caller adds the context
	}
	group.TypeMeta = metav1.TypeMeta{APIVersion: api.Version().String(), Kind: gangapi.Kind}
	body, err := json.Marshal(group)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	answer, err := groups.RESTClient().Post().
		AbsPath("/apis", api.Version().Group, api.Version().Version, "namespaces", group.Namespace, gangapi.Plural).
		Param("dryRun", metav1.DryRunAll).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).
		Body(body).
		DoRaw(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller adds the context
	}
	var made schedulingv1beta1.PodGroup
	if err := json.Unmarshal(answer, &made); err != nil {
		return nil, fmt.Errorf("decoding the answer: %w", err)
	}
	return &made, nil
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

// answer derives the gates that are off from the stored fields.
func answer(kept *schedulingv1beta1.PodGroup) (mode Mode, off []string) {
	if kept.Spec.SchedulingConstraints == nil || len(kept.Spec.SchedulingConstraints.Topology) == 0 {
		off = append(off, gateConstraints)
	}
	if len(kept.Spec.ResourceClaims) == 0 {
		off = append(off, gateClaims)
	}
	if len(off) > 0 {
		return Groups, off
	}
	return Full, nil
}
