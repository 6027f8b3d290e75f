package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
)

// Renderer versions the rules by which New renders a JobSet. It rises with every change that renders a case of testdata
// differently, so that a controller recognizes queued JobSets that an earlier version has rendered.
const Renderer = 9

// Decide returns the decisions of these options that show in the pods of a planned job.
func (o Options) Decide(planned Plan) statev1alpha1.Decisions {
	decided := statev1alpha1.Decisions{GangByDefault: o.Gang, ComputeDomain: planned.ComputeDomain != nil}
	if len(planned.Secrets) > 0 {
		decided.SecretSuffix = o.SecretSuffix
	}
	if o.StatusServer != nil {
		decided.StatusServer = &statev1alpha1.StatusServerReference{URL: o.StatusServer.URL}
	}
	return decided
}

// Under returns the options for a job with recorded decisions. The authority that its pods trust is not frozen: it
// stays that of o.
func (o Options) Under(decided statev1alpha1.Decisions) Options {
	o.Gang, o.WithoutDomain = decided.GangByDefault, !decided.ComputeDomain
	o.SecretSuffix = decided.SecretSuffix
	authority := ""
	if o.StatusServer != nil {
		authority = o.StatusServer.Authority
	}
	o.StatusServer = nil
	if decided.StatusServer != nil {
		o.StatusServer = &StatusServer{URL: decided.StatusServer.URL, Authority: authority}
	}
	return o
}

// DecisionsOf reads the decisions off a JobSet that was rendered with them, for jobs without frozen state.
func DecisionsOf(jobSet *jobsetv1alpha2.JobSet) statev1alpha1.Decisions {
	return statev1alpha1.Decisions{
		GangByDefault: IsGrouped(jobSet.Spec),
		ComputeDomain: inDomain(jobSet),
		StatusServer:  reportsTo(jobSet),
		SecretSuffix:  secretSuffixOf(jobSet),
	}
}

// secretSuffixOf reads the random end off the names of the Secrets that the pods of a JobSet mount; empty if they have
// fixed names, or mount none of ours. Frameworks call the volume like the fixed part of the name.
func secretSuffixOf(jobSet *jobsetv1alpha2.JobSet) string {
	_, suffixes := framework.Suffixes()
	for i := range jobSet.Spec.ReplicatedJobs {
		for _, volume := range jobSet.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Volumes {
			if volume.Secret == nil || !slices.Contains(suffixes, volume.Name) {
				continue
			}
			fixed := framework.SecretName(jobSet.Name, volume.Name, "")
			if end, ok := strings.CutPrefix(volume.Secret.SecretName, fixed+"-"); ok {
				return end
			}
		}
	}
	return ""
}

// Rendering identifies the planned JobSet. Whether it is suspended is no part of that.
func (p Plan) Rendering() (statev1alpha1.Rendering, error) {
	jobSet := *p.JobSet
	jobSet.Spec.Suspend = nil
	text, err := json.Marshal(&jobSet)
	if err != nil {
		return statev1alpha1.Rendering{}, fmt.Errorf("encoding JobSet %s: %w", jobSet.Name, err)
	}
	digest := sha256.Sum256(text)
	return statev1alpha1.Rendering{Renderer: Renderer, Digest: hex.EncodeToString(digest[:])}, nil
}
