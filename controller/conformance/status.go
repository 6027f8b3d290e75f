package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	configapi "github.com/kubeflow/trainer/v2/pkg/apis/config/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/features"
	"sigs.k8s.io/yaml"
)

// configuration returns that of an installed upstream manager, as far as rendering reads it.
func configuration() *configapi.Configuration {
	return &configapi.Configuration{
		CertManagement: &configapi.CertManagement{
			WebhookServiceName: "kubeflow-trainer-controller-manager",
			WebhookSecretName:  "kubeflow-trainer-webhook-cert",
		},
		StatusServer: &configapi.StatusServer{Port: new(int32(10443))},
	}
}

// readOptions reads whether options.yaml wants a status server; its authority is a Secret in cluster.yaml.
func readOptions(folder string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(folder, "options.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the options: %w", err)
	}
	var options struct {
		StatusServer map[string]any `json:"statusServer"`
	}
	if err = yaml.Unmarshal(text, &options); err != nil {
		return false, fmt.Errorf("parsing options.yaml: %w", err)
	}
	return options.StatusServer != nil, nil
}

// switchGates sets upstream's feature gates, which are global, to those of the case.
func (s scene) switchGates() error {
	if err := features.SetEnable(features.TrainJobStatus, s.status); err != nil {
		return fmt.Errorf("setting feature gate %s: %w", features.TrainJobStatus, err)
	}
	return nil
}
