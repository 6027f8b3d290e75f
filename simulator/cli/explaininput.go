package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/simulator/explain/jobs"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
)

// pluginWithLevels is the plugin whose arguments define the fleet's levels.
const pluginWithLevels = "GangPlacement"

// scene is a cluster about which questions are answered.
type scene struct {
	namespace string
	source    string
	now       time.Time
	snapshot  capture.Snapshot
	cluster   *jobs.Cluster
	whatif    *whatif.WhatIf
	// before is the cluster without the jobs that are added, nil if none is.
	before *whatif.WhatIf
	// added are the jobs that are taken as submitted.
	added []jobs.Submitted
	notes []string
}

// openScene reads everything that is given.
func openScene(ctx context.Context, env Environment, options explainOptions) (*scene, error) {
	profile, err := readProfile(options.scheduler)
	if err != nil {
		return nil, err
	}
	var work workload.Workload
	if options.withJob != "" {
		if work, err = workload.Load([]string{options.withJob}); err != nil {
			return nil, err
		}
	}
	snapshot, err := readCluster(ctx, env, options)
	if err != nil {
		return nil, err
	}
	for _, warning := range snapshot.Warnings {
		if _, err := fmt.Fprintln(env.Err, "lockstep: "+warning); err != nil {
			return nil, fmt.Errorf("printing a warning: %w", err)
		}
	}
	s := &scene{
		namespace: namespaceOf(
			options,
		),
		source:   sourceOf(options),
		now:      snapshot.Manifest.Taken,
		snapshot: snapshot,
		cluster:  jobs.NewCluster(snapshot),
	}
	if err := s.complete(snapshot); err != nil {
		return nil, err
	}
	if s.whatif, err = whatif.New(s.cluster.Objects(), profile, s.now); err != nil {
		return nil, &badinput.Error{
			Where: s.source,
			What:  err.Error(),
			Mend:  "name the fleet's levels with --scheduler-config",
		}
	}
	if n := len(snapshot.DeviceTaintRules); n > 0 {
		s.notes = append(s.notes, fmt.Sprintf(
			"%d DeviceTaintRules are not looked at: devices that only a rule taints are taken to be free for all", n))
	}
	return s, s.submit(ctx, work)
}

// complete refuses a snapshot that lacks the kinds on which answers depend.
func (s *scene) complete(snapshot capture.Snapshot) error {
	for _, kind := range snapshot.Manifest.Kinds {
		if kind.Resource == "podgroups" && kind.State == capture.Absent {
			return &badinput.Error{
				Where: s.source,
				What:  "the API server serves no PodGroups, so there are no gangs",
				Mend:  "install Lockstep's CRDs, or serve scheduling.k8s.io/v1beta1 with the feature gate GenericWorkload",
			}
		}
	}
	if len(snapshot.Nodes) == 0 {
		return &badinput.Error{Where: s.source, What: "the cluster has no nodes", Mend: "look at another one"}
	}
	return nil
}

// submit takes the jobs of a file as submitted.
func (s *scene) submit(ctx context.Context, work workload.Workload) (err error) {
	if len(work.TrainJobs()) == 0 {
		return nil
	}
	if err := work.CheckRuntimes(s.cluster.Runtime, s.cluster.RuntimeNames()...); err != nil {
		return err
	}
	if s.added, err = s.cluster.Submit(ctx, work, s.now); err != nil {
		return err
	}
	s.before = s.whatif
	for _, job := range s.added {
		for _, group := range job.Groups {
			s.whatif = s.whatif.With(group.PodGroup, group.Members, job.Devices)
		}
		s.notes = append(s.notes, job.Notes...)
	}
	return nil
}

// readCluster reads a snapshot file, or takes one of a live cluster.
func readCluster(ctx context.Context, env Environment, options explainOptions) (capture.Snapshot, error) {
	if options.snapshot != "" {
		if options.kubeconfig != "" {
			return capture.Snapshot{}, &badinput.Error{
				Where: "--snapshot, --kubeconfig", What: "two clusters are named", Mend: "leave one of them out",
			}
		}
		return capture.ReadFile(options.snapshot)
	}
	client, err := clientConfig(options.kubeconfig)
	if err != nil {
		return capture.Snapshot{}, err
	}
	cluster, err := capture.Connect(ctx, client)
	if err != nil {
		return capture.Snapshot{}, err
	}
	return capture.Live(ctx, cluster, capture.Options{Taken: env.Clock.Now()})
}

func sourceOf(options explainOptions) string {
	if options.snapshot != "" {
		return options.snapshot
	}
	return "the cluster"
}

// namespaceOf returns the namespace of -n, or of the kubeconfig's context; of a snapshot it is default.
func namespaceOf(options explainOptions) string {
	if options.namespace != "" {
		return options.namespace
	}
	if options.snapshot == "" {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = options.kubeconfig
		said, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).Namespace()
		if err == nil && said != "" {
			return said
		}
	}
	return "default"
}

// profile is the part of a KubeSchedulerConfiguration that answers depend on.
type profile struct {
	SchedulerName string `json:"schedulerName"`
	PluginConfig  []struct {
		Name string         `json:"name"`
		Args map[string]any `json:"args"`
	} `json:"pluginConfig"`
	Plugins map[string]struct {
		Enabled []struct {
			Name string `json:"name"`
		} `json:"enabled"`
	} `json:"plugins"`
}

// readProfile reads the first profile that has our plugins; without a file that is the shipped one.
func readProfile(file string) (whatif.Profile, error) {
	content, where := chart.Profile(), "the shipped profile"
	if file != "" {
		where = "--scheduler-config " + file
		read, err := os.ReadFile(file)
		if err != nil {
			return whatif.Profile{}, &badinput.Error{Where: where, What: "it cannot be read: " + err.Error()}
		}
		content = read
	}
	var all struct {
		Kind     string    `json:"kind"`
		Profiles []profile `json:"profiles"`
	}
	if err := yaml.Unmarshal(content, &all); err != nil {
		return whatif.Profile{}, &badinput.Error{
			Where: where,
			What:  "it is no configuration of a scheduler: " + err.Error(),
		}
	}
	at := slices.IndexFunc(all.Profiles, profile.ours)
	if at < 0 {
		return whatif.Profile{}, &badinput.Error{
			Where: where, What: "no profile there has the plugin " + pluginWithLevels,
			Mend: "name the file with which lockstep-scheduler is started",
		}
	}
	return all.Profiles[at].read(where)
}

// ours reports whether the profile is one of lockstep-scheduler.
func (p profile) ours() bool {
	for _, point := range p.Plugins {
		for _, plugin := range point.Enabled {
			if plugin.Name == pluginWithLevels {
				return true
			}
		}
	}
	return false
}

func (p profile) read(where string) (whatif.Profile, error) {
	out := whatif.Profile{Scheduler: p.SchedulerName}
	raw := &runtime.Unknown{}
	for _, plugin := range p.PluginConfig {
		if plugin.Name != pluginWithLevels {
			continue
		}
		text, err := yaml.Marshal(plugin.Args)
		if err != nil {
			return out, fmt.Errorf("printing the arguments of %s: %w", pluginWithLevels, err)
		}
		raw.Raw = text
	}
	args, err := config.Placement(raw)
	if err != nil {
		return out, &badinput.Error{Where: where, What: "arguments of " + pluginWithLevels + ": " + err.Error()}
	}
	out.Placement = args
	return out, nil
}
