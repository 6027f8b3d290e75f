package jobs

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// channelTemplate is the claim template that NVIDIA's controller would make for the ComputeDomain of a job that is not
// there yet.
func channelTemplate(job *trainerv1alpha1.TrainJob) (*resourcev1.ResourceClaimTemplate, error) {
	key := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	template, err := nvlink.Template(nvlink.Domain{
		Key: key, UID: types.UID("the ComputeDomain of " + key.String()), Template: plan.ChannelTemplate(job),
	})
	if err != nil {
		return nil, fmt.Errorf("making the claim template of %s: %w", key, err)
	}
	return template, nil
}
