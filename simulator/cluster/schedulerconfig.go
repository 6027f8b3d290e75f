package cluster

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// schedulerConfig is the shipped scheduler configuration, pointed at this run's API server. There is one instance, so
// it need not be elected.
func schedulerConfig(shipped []byte, kubeconfig string) ([]byte, error) {
	var config map[string]any
	if err := yaml.Unmarshal(shipped, &config); err != nil {
		return nil, fmt.Errorf("decoding the scheduler's configuration: %w", err)
	}
	config["clientConnection"] = map[string]any{"kubeconfig": kubeconfig, "qps": 500, "burst": 1000}
	config["leaderElection"] = map[string]any{"leaderElect": false}
	content, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the scheduler's configuration: %w", err)
	}
	return content, nil
}
