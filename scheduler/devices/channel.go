package devices

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Channels connect pods by NVLink across nodes: each pod claims the one channel of its node, for a ComputeDomain. The
// names are those of NVIDIA's DRA driver.
const (
	labelDomain   = "resource.nvidia.com/computeDomain"
	channelDriver = "compute-domain.nvidia.com"
	channelClass  = "compute-domain-default-channel.nvidia.com"
	channelConfig = "ComputeDomainChannelConfig"
)

// channelOf returns the UID of the ComputeDomain for which a claim asks for a channel; "" if it asks for none. fault
// describes the mistake in a claim that does.
func channelOf(claim *resourcev1.ResourceClaim) (domain types.UID, fault string) {
	asks := slices.ContainsFunc(claim.Spec.Devices.Requests, asksForChannel)
	for _, config := range claim.Spec.Devices.Config {
		if config.Opaque == nil || config.Opaque.Driver != channelDriver {
			continue
		}
		var parameters struct {
			Kind     string    `json:"kind"`
			DomainID types.UID `json:"domainID"`
		}
		err := json.Unmarshal(config.Opaque.Parameters.Raw, &parameters)
		if err == nil && parameters.Kind == channelConfig {
			asks, domain = true, parameters.DomainID
		}
	}
	if asks && domain == "" {
		return "", fmt.Sprintf(
			"claim %s asks for a channel and names no ComputeDomain: its configuration for driver %s "+
				"needs kind %s and a domainID; use the claim template of the ComputeDomain",
			claim.Name,
			channelDriver,
			channelConfig,
		)
	}
	return domain, ""
}

func asksForChannel(request resourcev1.DeviceRequest) bool {
	if request.Exactly != nil {
		return request.Exactly.DeviceClassName == channelClass
	}
	return slices.ContainsFunc(request.FirstAvailable, func(r resourcev1.DeviceSubRequest) bool {
		return r.DeviceClassName == channelClass
	})
}

// domainOf returns the ComputeDomain that gives a pod its channel, "" for none. Claims that do not exist are none:
// their faults are reported where they are read.
func (s *Stock) domainOf(pod *corev1.Pod, group *schedulingv1beta1.PodGroup) (domain types.UID, fault string) {
	for i := range pod.Spec.ResourceClaims {
		claim := objects{s.manager}.Claim(pod.Namespace, claimNameOf(pod, group, &pod.Spec.ResourceClaims[i]))
		if claim == nil {
			continue
		}
		of, wrong := channelOf(claim)
		switch {
		case wrong != "":
			return "", wrong
		case of != "" && domain != "" && of != domain:
			return "", fmt.Sprintf(
				"pod %s claims channels of the ComputeDomains %s and %s; a node is in one",
				pod.Name,
				domain,
				of,
			)
		case of != "":
			domain = of
		}
	}
	return domain, ""
}

// claimNameOf is the name of the claim that an entry of a pod stands for; "" if there is none.
func claimNameOf(pod *corev1.Pod, group *schedulingv1beta1.PodGroup, entry *corev1.PodResourceClaim) string {
	name, _, err := resourceclaim.Name(pod, entry)
	if err != nil && group != nil {
		for i := range group.Spec.ResourceClaims {
			if group.Spec.ResourceClaims[i].Name == entry.Name {
				name, _, err = resourceclaim.NameFromPodGroup(group, &group.Spec.ResourceClaims[i])
			}
		}
	}
	if err != nil || name == nil {
		return ""
	}
	return *name
}
