package migrate

import (
	corev1 "k8s.io/api/core/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// jaxJob is a JAXJob, as far as it is read.
type jaxJob struct {
	oldObject `json:",inline"`
	Spec      struct {
		RunPolicy runPolicy              `json:"runPolicy"`
		Replicas  map[string]replicaSpec `json:"jaxReplicaSpecs"`
	} `json:"spec"`
}

// jaxEnvironment returns the environment of JAXJob's pods. The controller reserves none of today's variables: the
// user's win.
func jaxEnvironment() environment {
	return environment{replaced: map[string]string{
		"COORDINATOR_ADDRESS": "JAX_COORDINATOR_ADDRESS is host:port",
		"COORDINATOR_PORT":    "JAX_COORDINATOR_ADDRESS is host:port",
		"NUM_PROCESSES":       "use JAX_NUM_PROCESSES",
		"PROCESS_ID":          "use JAX_PROCESS_ID",
	}}
}

// jaxJob makes a runtime and a TrainJob of a JAXJob.
func (p *page) jaxJob() ([]map[string]any, error) {
	var old jaxJob
	if err := p.fill(p.copyWithoutServer(), nil, &old); err != nil {
		return nil, err
	}
	s, err := p.successor(old.Metadata, "jax")
	if err != nil {
		return nil, err
	}
	s.runtime.Spec.MLPolicy.JAX = &trainerv1alpha1.JAXMLPolicySource{}
	main, err := p.nodes(s, flat{
		specs: old.Spec.Replicas, where: at("spec", "jaxReplicaSpecs"), kinds: []string{"Worker"},
		container: "jax", restart: corev1.RestartPolicyNever, env: jaxEnvironment(), policy: old.Spec.RunPolicy,
	})
	if err != nil {
		return nil, err
	}
	p.note(
		commandAt(main.Container, main.where),
		"COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES and PROCESS_ID are "+
			"JAX_COORDINATOR_ADDRESS (host:port), JAX_NUM_PROCESSES and JAX_PROCESS_ID in its environment now",
	)
	if err := p.live(s, old.Spec.RunPolicy); err != nil {
		return nil, err
	}
	return p.finish(s)
}
