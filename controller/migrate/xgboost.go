package migrate

import (
	corev1 "k8s.io/api/core/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// xgboostJob is an XGBoostJob, as far as it is read.
type xgboostJob struct {
	oldObject `json:",inline"`
	Spec      struct {
		RunPolicy runPolicy              `json:"runPolicy"`
		Replicas  map[string]replicaSpec `json:"xgbReplicaSpecs"`
	} `json:"spec"`
}

// xgboostEnvironment returns the environment of XGBoostJob's pods.
func xgboostEnvironment() environment {
	return environment{
		replaced: map[string]string{
			"MASTER_ADDR":  "use DMLC_TRACKER_URI",
			"MASTER_PORT":  "use DMLC_TRACKER_PORT",
			"RANK":         "use DMLC_TASK_ID",
			"WORLD_SIZE":   "use DMLC_NUM_WORKER, which counts GPUs",
			"WORKER_ADDRS": "the tracker tells the workers of each other",
			"WORKER_PORT":  "the tracker tells the workers of each other",
		},
		reserved: []string{"DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"},
	}
}

// xgboostJob makes a runtime and a TrainJob of an XGBoostJob. Master and workers are nodes alike, the Master's rank is 0.
func (p *page) xgboostJob() ([]map[string]any, error) {
	var old xgboostJob
	if err := p.fill(p.copyWithoutServer(), nil, &old); err != nil {
		return nil, err
	}
	s, err := p.successor(old.Metadata, "xgboost")
	if err != nil {
		return nil, err
	}
	s.runtime.Spec.MLPolicy.XGBoost = &trainerv1alpha1.XGBoostMLPolicySource{}
	main, err := p.nodes(s, flat{
		specs: old.Spec.Replicas, where: at("spec", "xgbReplicaSpecs"), kinds: []string{"Master", "Worker"},
		container: "xgboost", restart: corev1.RestartPolicyNever, env: xgboostEnvironment(), policy: old.Spec.RunPolicy,
	})
	if err != nil {
		return nil, err
	}
	p.note(
		commandAt(main.Container, main.where),
		"MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE are DMLC_TRACKER_URI, "+
			"DMLC_TRACKER_PORT, DMLC_TASK_ID and DMLC_NUM_WORKER in its environment now; the node of rank 0 must start the tracker",
	)
	if err := p.live(s, old.Spec.RunPolicy); err != nil {
		return nil, err
	}
	return p.finish(s)
}
