package migrate

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// targets are the replicated jobs that an override is for.
type targets struct {
	TargetJobs []struct {
		Name string `json:"name"`
	} `json:"targetJobs"`
}

// override is one entry of spec.podTemplateOverrides (2.1). The patch of today has all fields of its spec.
type override struct {
	targets  `json:",inline"`
	Metadata *metav1.ObjectMeta            `json:"metadata,omitempty"`
	Spec     *trainerv1alpha1.PodSpecPatch `json:"spec,omitempty"`
}

// The lists of overrides that a TrainJob can have. In podSpecOverrides (2.0) the fields of spec stand beside
// targetJobs.
const (
	podSpecOverrides     = "podSpecOverrides"
	podTemplateOverrides = "podTemplateOverrides"
)

// patch removes from a TrainJob the fields that change its runtime, and returns them as one runtime patch; nil if there
// is nothing.
func (p *page) patch(content map[string]any) (map[string]any, error) {
	template := map[string]any{}
	metadata := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		where := at("spec", key)
		if said := take(content, where); !empty(said) {
			metadata[key] = said
			p.note(where, "the runtime patch of "+patchManager+" puts them on the JobSet now")
		}
	}
	if len(metadata) > 0 {
		template["metadata"] = metadata
	}
	jobs, err := p.overriddenJobs(content)
	if err != nil {
		return nil, err
	}
	if len(jobs) > 0 {
		template["spec"] = map[string]any{"replicatedJobs": jobs}
	}
	if len(template) == 0 {
		return nil, nil
	}
	return map[string]any{
		"manager":             patchManager,
		"trainingRuntimeSpec": map[string]any{"template": template},
	}, nil
}

// overriddenJobs spreads the overrides over their target jobs, in the order in which those are first named. Overrides
// of the same job are merged in list order, as 2.1 applied them.
func (p *page) overriddenJobs(content map[string]any) ([]any, error) {
	var names []string
	merged := map[string][]byte{}
	for _, key := range []string{podSpecOverrides, podTemplateOverrides} {
		where := at("spec", key)
		entries, err := p.list(where, take(content, where))
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			p.note(where, "they are spec.runtimePatches of manager "+patchManager+" now")
		}
		for i := range entries {
			one, err := p.override(where.child(i))
			if err != nil {
				return nil, err
			}
			if names, err = spread(one, names, merged); err != nil {
				return nil, p.bad(where.child(i), err.Error(), "write the runtime patch by hand")
			}
		}
	}
	var jobs []any
	for _, name := range names {
		job, err := p.patchedJob(name, merged[name])
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// spread merges one override over the earlier ones, for each of its target jobs. It returns the names with the new
// ones.
func spread(one override, names []string, merged map[string][]byte) ([]string, error) {
	all := slices.Clone(names)
	for _, target := range one.TargetJobs {
		if !slices.Contains(all, target.Name) {
			all = append(all, target.Name)
		}
		template, err := overlaid(merged[target.Name], one)
		if err != nil {
			return nil, err
		}
		merged[target.Name] = template
	}
	return all, nil
}

func (p *page) list(where path, value any) ([]any, error) {
	entries, isList := value.([]any)
	if value != nil && !isList {
		return nil, p.bad(where, where.String()+" is not a list", "write a list of overrides")
	}
	return entries, nil
}

// override reads the entry at a path.
func (p *page) override(where path) (override, error) {
	entry, isMap := p.value(where).(map[string]any)
	if !isMap {
		return override{}, p.bad(
			where,
			where.String()+" is not an object",
			"write targetJobs and what to override below it",
		)
	}
	entry = runtime.DeepCopyJSON(entry)
	var one override
	var err error
	if slices.Contains(where, any(podSpecOverrides)) {
		var old struct {
			targets                      `json:",inline"`
			trainerv1alpha1.PodSpecPatch `json:",inline"`
		}
		err = p.fill(entry, where, &old)
		one = override{targets: old.targets, Spec: &old.PodSpecPatch}
	} else {
		err = p.fill(entry, where, &one)
	}
	if err != nil {
		return override{}, err
	}
	if len(one.TargetJobs) == 0 {
		p.note(where, "left out: it names no target jobs, so it changed nothing")
	}
	return one, p.checkOverride(where, one)
}

// checkOverride refuses overrides that no controller ever accepted.
func (p *page) checkOverride(where path, one override) error {
	for i, target := range one.TargetJobs {
		if target.Name == "" {
			return p.bad(where.child("targetJobs", i), "a target job has no name", "add it")
		}
	}
	if one.Spec == nil {
		return nil
	}
	for _, container := range one.Spec.Containers {
		main := []string{
			trainerv1alpha1.DatasetInitializerName, trainerv1alpha1.ModelInitializerName, trainerv1alpha1.NodeName,
		}
		if slices.Contains(main, container.Name) && len(container.Env) > 0 {
			return p.bad(where, "an override sets env of container "+container.Name,
				"move it to spec.trainer.env or spec.initializer")
		}
	}
	return nil
}

// overlaid is the pod template patch so far with one override on top, by the rules by which patches are applied.
func overlaid(base []byte, one override) ([]byte, error) {
	top, err := json.Marshal(trainerv1alpha1.PodTemplatePatch{Metadata: one.Metadata, Spec: one.Spec})
	if err != nil {
		return nil, fmt.Errorf("printing an override: %w", err)
	}
	if base == nil {
		return top, nil
	}
	merged, err := strategicpatch.StrategicMergePatch(base, top, corev1.PodTemplateSpec{})
	if err != nil {
		return nil, fmt.Errorf("merging overrides: %w", err)
	}
	return merged, nil
}

// patchedJob is the patch of one replicated job.
func (p *page) patchedJob(name string, text []byte) (map[string]any, error) {
	var template trainerv1alpha1.PodTemplatePatch
	if err := json.Unmarshal(text, &template); err != nil {
		return nil, p.bad(
			at("spec"),
			"merging the overrides of "+name+": "+err.Error(),
			"write the runtime patch by hand",
		)
	}
	if template.Spec != nil {
		for _, container := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
			var volumes []string
			for _, mount := range container.VolumeMounts {
				if slices.Contains(volumes, mount.Name) {
					return nil, p.bad(
						at("spec"),
						fmt.Sprintf(
							"the overrides of %s mount volume %s twice in container %s",
							name,
							mount.Name,
							container.Name,
						),
						"mount it once; a runtime patch can mount a volume in one place only",
					)
				}
				volumes = append(volumes, mount.Name)
			}
		}
	}
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return nil, p.bad(
			at("spec"),
			"merging the overrides of "+name+": "+err.Error(),
			"write the runtime patch by hand",
		)
	}
	tidy(content)
	return map[string]any{
		"name":     name,
		"template": map[string]any{"spec": map[string]any{"template": content}},
	}, nil
}
