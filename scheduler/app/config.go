package app

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/chart"
)

// file is the scheduler's configuration file, as much of it as is needed to find the API server.
type file struct {
	content map[string]any
	// shipped is set if no file was given.
	shipped bool
}

// readConfig reads the file named by --config; without one it is the shipped profile. (kube-scheduler's own default
// would be a second default-scheduler.)
func readConfig(flags *pflag.FlagSet) (file, error) {
	name, err := flags.GetString("config")
	if err != nil {
		return file{}, fmt.Errorf("reading --config: %w", err)
	}
	content := chart.Profile()
	if name != "" {
		if content, err = os.ReadFile(name); err != nil {
			return file{}, &ConfigError{name, err}
		}
		if err := check(content); err != nil {
			return file{}, &ConfigError{name, err}
		}
	}
	out := file{shipped: name == ""}
	if err := yaml.Unmarshal(content, &out.content); err != nil {
		return file{}, fmt.Errorf("parsing --config %s: %w", name, err)
	}
	return out, nil
}

// kubeconfig is the kubeconfig in effect, "" for the one of the pod: that of the file, else --kubeconfig, else the
// environment's. changed is set if the file does not say so already; kube-scheduler reads neither of the others when it
// has a file.
func (f file) kubeconfig(flags *pflag.FlagSet, env string) (path string, changed bool) {
	if connection, ok := f.content["clientConnection"].(map[string]any); ok {
		if said, _ := connection["kubeconfig"].(string); said != "" {
			return said, f.shipped
		}
	}
	path = env
	if flag := flags.Lookup("kubeconfig"); flag != nil && flag.Changed {
		path = flag.Value.String()
	}
	return path, path != "" || f.shipped
}

// defaultNamespace is the namespace of Lockstep if the file does not name one.
const defaultNamespace = "lockstep-system"

// namespace returns the namespace in which the scheduler is installed, and may create PodGroups: that of its lease.
func (f file) namespace() string {
	election, _ := f.content["leaderElection"].(map[string]any)
	name, _ := election["resourceNamespace"].(string)
	return cmp.Or(name, defaultNamespace)
}

// write saves the file with the kubeconfig under a temporary name.
func (f file) write(kubeconfig string) (string, error) {
	connection, _ := f.content["clientConnection"].(map[string]any)
	if connection == nil {
		connection = make(map[string]any, 1)
	}
	connection["kubeconfig"] = kubeconfig
	f.content["clientConnection"] = connection
	content, err := yaml.Marshal(f.content)
	if err != nil {
		return "", fmt.Errorf("encoding the configuration: %w", err)
	}
	temporary, err := os.CreateTemp("", "lockstep-scheduler-*.yaml")
	if err != nil {
		return "", fmt.Errorf("creating a configuration file: %w", err)
	}
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Close()); err != nil {
		return "", fmt.Errorf("writing %s: %w", temporary.Name(), err)
	}
	return temporary.Name(), nil
}
