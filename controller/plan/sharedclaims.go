package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// SharedClaim is a ResourceClaim that the pods of a group share by its name, where the API server does not share one
// for them.
type SharedClaim struct {
	// Name is the claim's, in the job's namespace.
	Name string
	// Template is the ResourceClaimTemplate from which it is created.
	Template string
	// Group is the PodGroup to which it belongs: it lives as long as that.
	Group string
}

// sharesByName reports whether claims that a group shares become ordinary ones, which pods name.
func (o Options) sharesByName() bool { return !o.KeepsClaims && o.GangAPI == gangapi.Resources }

// checkSharers refuses to share claims by name among more pods than one claim can be reserved for. A claim that
// Kubernetes' own PodGroup shares is reserved for the group, however large it is.
func (g *gang) checkSharers(pods int32) field.ErrorList {
	if pods <= resourcev1.ResourceClaimReservedForMaxSize {
		return nil
	}
	return field.ErrorList{field.Forbidden(runtimePath(), fmt.Sprintf(
		"resourceClaims of its scheduling are shared by %d pods, and by at most %d where PodGroups are those of %s; use fewer nodes, or a "+
			"cluster with the gates GenericWorkload and DRAWorkloadResourceClaims",
		pods,
		resourcev1.ResourceClaimReservedForMaxSize,
		gangapi.Resources.Version(),
	))}
}

// sharers is the number of pods that name a claim which their group shares.
func (d *draft) sharers(g *gang) int32 {
	pods := int32(0)
	for i, replicated := range d.spec.ReplicatedJobs {
		named := slices.ContainsFunc(
			replicated.Template.Spec.Template.Spec.ResourceClaims,
			func(own corev1.PodResourceClaim) bool {
				return slices.ContainsFunc(
					g.rules.ResourceClaims,
					func(shared schedulingv1beta1.PodGroupResourceClaim) bool {
						return own.Name == shared.Name
					},
				)
			},
		)
		if named && slices.Contains(g.members, replicated.Name) {
			pods += d.pods(i)
		}
	}
	return pods
}

// shareByName has the members' pods name the claims that their group shares, and returns these. A claim that the
// runtime names is there already.
func (g *gang) shareByName(spec *jobsetv1alpha2.JobSetSpec) []SharedClaim {
	var claims []SharedClaim
	for _, shared := range g.rules.ResourceClaims {
		if shared.ResourceClaimTemplateName == nil {
			continue
		}
		claim := SharedClaim{
			Name:     g.name + "-" + shared.Name,
			Template: *shared.ResourceClaimTemplateName,
			Group:    g.name,
		}
		for i := range spec.ReplicatedJobs {
			if !slices.Contains(g.members, spec.ReplicatedJobs[i].Name) {
				continue
			}
			pod := &spec.ReplicatedJobs[i].Template.Spec.Template.Spec
			at := slices.IndexFunc(
				pod.ResourceClaims,
				func(own corev1.PodResourceClaim) bool { return own.Name == shared.Name },
			)
			if at >= 0 {
				pod.ResourceClaims[at] = corev1.PodResourceClaim{Name: shared.Name, ResourceClaimName: &claim.Name}
			}
		}
		claims = append(claims, claim)
	}
	return claims
}
