package schedperf

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/scheduler/app"
)

// object is a decoded YAML mapping.
type object = map[string]any

// Derive makes the configuration of one run: only the workload of upstream's file, with its parameters replaced.
// Thresholds, which are for upstream's machines, are left out. If schedulerConfig is not empty, it is the path of the
// scheduler's configuration, and the gates that Lockstep relies on are set on top of the workload's own. pods is the
// number of measured pods.
func Derive(upstream []byte, w Workload, schedulerConfig string) (content []byte, pods int, err error) {
	var cases []any
	if err := yaml.Unmarshal(upstream, &cases); err != nil {
		return nil, 0, fmt.Errorf("parsing the test cases of %s: %w", w.Dir, err)
	}
	testCase, err := named(cases, w.Case)
	if err != nil {
		return nil, 0, err
	}
	workloads, _ := testCase["workloads"].([]any)
	workload, err := named(workloads, w.Name)
	if err != nil {
		return nil, 0, fmt.Errorf("test case %s: %w", w.Case, err)
	}
	if pods, err = replace(workload, w); err != nil {
		return nil, 0, err
	}
	testCase["workloads"] = []any{workload}
	if schedulerConfig != "" {
		testCase["schedulerConfigPath"] = schedulerConfig
		if err := addGates(testCase, workload); err != nil {
			return nil, 0, err
		}
	}
	content, err = yaml.Marshal([]any{testCase})
	if err != nil {
		return nil, 0, fmt.Errorf("encoding test case %s: %w", w.Case, err)
	}
	return content, pods, nil
}

func named(list []any, name string) (object, error) {
	for _, item := range list {
		if entry, ok := item.(object); ok && entry["name"] == name {
			return entry, nil
		}
	}
	return nil, fmt.Errorf("scheduler_perf has no %s here", name)
}

// replace sets the workload's name and parameters and returns the number of measured pods.
func replace(workload object, w Workload) (pods int, err error) {
	delete(workload, "threshold")
	if w.Derived != "" {
		workload["name"] = w.Derived
	}
	params, _ := workload["params"].(object)
	for name, value := range w.Params {
		if _, ok := params[name]; !ok {
			return 0, fmt.Errorf("workload %s has no parameter %s", w.Name, name)
		}
		params[name] = float64(value)
	}
	pods = 1
	for _, name := range w.Measured {
		count, ok := params[name].(float64)
		if !ok {
			return 0, fmt.Errorf("workload %s has no number %s", w.Name, name)
		}
		pods *= int(count)
	}
	return pods, nil
}

// addGates sets the gates that our binary would set on a cluster with the workload's gates.
func addGates(testCase, workload object) error {
	gates := make(object)
	for _, from := range []object{testCase, workload} {
		own, _ := from["featureGates"].(object)
		maps.Copy(gates, own)
	}
	offer := probe.Offer{Mode: probe.Full, DeviceTaintRules: true}
	if on, _ := gates[string(features.DRAWorkloadResourceClaims)].(bool); !on {
		offer.Mode, offer.Off = probe.Groups, []string{string(features.DRAWorkloadResourceClaims)}
	}
	if err := app.SetGates(recorder{utilfeature.DefaultMutableFeatureGate.DeepCopy(), gates}, offer); err != nil {
		return err
	}
	delete(workload, "featureGates")
	testCase["featureGates"] = gates
	return nil
}

// recorder records the gates that are set.
type recorder struct {
	featuregate.MutableFeatureGate

	set object
}

// SetFromMap sets nothing.
func (r recorder) SetFromMap(gates map[string]bool) error {
	for name, on := range gates {
		r.set[name] = on
	}
	return nil
}

// SchedulerConfig is Lockstep's KubeSchedulerConfiguration under the name that the workloads' pods carry and without
// leader election.
func SchedulerConfig() ([]byte, error) {
	var config object
	if err := yaml.Unmarshal(chart.Profile(), &config); err != nil {
		return nil, fmt.Errorf("parsing the profile: %w", err)
	}
	profiles, _ := config["profiles"].([]any)
	for _, item := range profiles {
		if profile, ok := item.(object); ok {
			profile["schedulerName"] = corev1.DefaultSchedulerName
		}
	}
	config["leaderElection"] = object{"leaderElect": false}
	content, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the profile: %w", err)
	}
	return content, nil
}
