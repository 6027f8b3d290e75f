package operators

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// trainer is Kubeflow Trainer's own manager, under its own roles. It runs in place of Lockstep's controller.
func trainer() Operator {
	return Operator{
		Name:     "kubeflow-trainer",
		Module:   Module{"github.com/kubeflow/trainer/v2", "v2.3.0"},
		Main:     "./cmd/trainer-controller-manager",
		Groups:   true,
		Webhooks: []string{"defaulter.trainer.kubeflow.org", "validator.trainer.kubeflow.org"},
		start: func(ctx context.Context, at place) error {
			release := cluster.Trainer{
				Version:   at.operator.Module.Version,
				Manager:   at.binary,
				Manifests: filepath.Join(at.folder, "manifests", "base"),
			}
			if err := at.ApplyTrainer(ctx, release, "crds"); err != nil {
				return fmt.Errorf("defining TrainJobs: %w", err)
			}
			if err := at.StartTrainer(ctx, release); err != nil {
				return fmt.Errorf("starting the manager: %w", err)
			}
			return at.ApplyTrainerWebhooks(ctx, release)
		},
	}
}
