package cluster

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests"
)

// shippedSchedulerConfig returns the configuration that this tree ships, with a kubeconfig.
func shippedSchedulerConfig(kubeconfig string) ([]byte, error) {
	shipped, err := manifests.Files.ReadFile("scheduler/config.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	return schedulerConfig(shipped, kubeconfig)
}

// schedulerConfig returns the shipped scheduler configuration with the kubeconfig of this run's API server, and no other difference.
func schedulerConfig(shipped []byte, kubeconfig string) ([]byte, error) {
	var config map[string]any
	if err := yaml.Unmarshal(shipped, &config); err != nil {
		return nil, fmt.Errorf("decoding the scheduler's configuration: %w", err)
	}
	connection, ok := config["clientConnection"].(map[string]any)
	if !ok {
		return nil, errors.New("the scheduler's configuration has no clientConnection")
	}
	connection["kubeconfig"] = kubeconfig
	content, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the scheduler's configuration: %w", err)
	}
	return content, nil
}
