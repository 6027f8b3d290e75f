package admission

import (
	corev1 "k8s.io/api/core/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// part is a part of a TrainJob that a client may send back in other words, or with less.
type part struct {
	// key is its name in the object that it is part of.
	key string
	// same reports whether two values of it mean the same.
	same func(a, b any) bool
	// young are the places in it that older clients do not know, and so drop when they send the whole object back.
	young []string
}

// specParts are the parts of a spec that are immutable by the CRD. Kueue 0.19 updates whole TrainJobs with the types of
// Trainer 2.2.
func specParts() []part {
	return []part{
		{key: "runtimeRef", same: same[trainerv1alpha1.RuntimeRef]},
		{key: "initializer", same: same[trainerv1alpha1.Initializer]},
		{key: "trainer", same: sameTrainer, young: []string{
			"resourceClaimsPerNode", // proposed for Trainer 2.4 (KEP-2782)
		}},
	}
}

// entryParts are a runtime patch, seen as a whole but for its time, and the fields of its pod specs that are immutable
// by the CRD where they are present before and after.
func entryParts() (whole part, fields []part) {
	whole = part{
		same: func(a, b any) bool {
			return same[trainerv1alpha1.RuntimePatch](without(a, "time"), without(b, "time"))
		},
		young: []string{
			// new in Trainer 2.3
			"trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec.template.spec.terminationGracePeriodSeconds",
		},
	}
	return whole, []part{
		{key: "serviceAccountName", same: same[string]},
		{key: "volumes", same: same[[]corev1.Volume]},
		{key: "initContainers", same: same[[]trainerv1alpha1.ContainerPatch]},
		{key: "containers", same: same[[]trainerv1alpha1.ContainerPatch]},
		{key: "imagePullSecrets", same: same[[]corev1.LocalObjectReference]},
		{key: "securityContext", same: same[corev1.PodSecurityContext]},
		{key: "terminationGracePeriodSeconds", same: same[int64]},
	}
}

// regains reports whether next has the meaning of old, or of old without its young places.
func (p part) regains(old, next any) bool {
	if p.same(old, next) {
		return true
	}
	known := old
	for _, place := range p.young {
		known = without(known, place)
	}
	return len(p.young) > 0 && p.same(known, next)
}

// restore puts old's value of the part into next, if next's regains it.
func (p part) restore(old, next map[string]any) {
	had, wanted := old[p.key], next[p.key]
	if had != nil && wanted != nil && p.regains(had, wanted) {
		next[p.key] = had
	}
}

// podSpecs are the pod specs that two patches have for the same ReplicatedJob, old before new.
func podSpecs(old, next map[string]any) [][2]map[string]any {
	jobs := func(patch map[string]any) []any {
		list, _ := object(patch, "trainingRuntimeSpec", "template", "spec")["replicatedJobs"].([]any)
		return list
	}
	pod := func(job map[string]any) map[string]any { return object(job, "template", "spec", "template", "spec") }
	var pairs [][2]map[string]any
	for _, item := range jobs(next) {
		job, _ := item.(map[string]any)
		had := named(jobs(old), "name", job["name"])
		if before, after := pod(had), pod(job); before != nil && after != nil {
			pairs = append(pairs, [2]map[string]any{before, after})
		}
	}
	return pairs
}
