package plan

import (
	"slices"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// membership decides which ReplicatedJobs start together.
//
// Out are those that must be complete before a member starts (initializers), and those that start only after the
// trainer is complete (an evaluation): waiting for them would be waiting for ever.
func membership(spec jobsetv1alpha2.JobSetSpec) []string {
	jobs, core := spec.ReplicatedJobs, trainers(spec.ReplicatedJobs)
	var starters, members []string
	for _, job := range jobs {
		awaited := awaitedBy(spec, job.Name)
		if !slices.ContainsFunc(core, func(name string) bool { return awaited[name] == complete }) {
			starters = append(starters, job.Name)
		}
	}
	done := map[string]bool{}
	for _, name := range starters {
		for awaited, how := range awaitedBy(spec, name) {
			done[awaited] = done[awaited] || how == complete || initializes(jobs, awaited)
		}
	}
	for _, name := range starters {
		if !done[name] {
			members = append(members, name)
		}
	}
	return members
}

// lateAmong are the members that start once other members are ready (an MPI launcher): they belong to the gang but
// cannot be counted before it runs.
func lateAmong(spec jobsetv1alpha2.JobSetSpec, members []string) []string {
	var late []string
	for _, name := range members {
		awaited := awaitedBy(spec, name)
		if slices.ContainsFunc(members, func(other string) bool { return awaited[other] == ready }) {
			late = append(late, name)
		}
	}
	return late
}

// trainers returns the ReplicatedJobs that train: by ancestor, else by name, else all that are no initializers.
func trainers(jobs []jobsetv1alpha2.ReplicatedJob) []string {
	for _, trains := range []func(jobsetv1alpha2.ReplicatedJob) bool{
		func(job jobsetv1alpha2.ReplicatedJob) bool { return ancestor(job) == trainerv1alpha1.AncestorTrainer },
		func(job jobsetv1alpha2.ReplicatedJob) bool {
			return job.Name == trainerv1alpha1.NodeName || job.Name == trainerv1alpha1.LauncherName
		},
		func(job jobsetv1alpha2.ReplicatedJob) bool { return ancestor(job) == "" },
	} {
		var names []string
		for _, job := range jobs {
			if trains(job) {
				names = append(names, job.Name)
			}
		}
		if len(names) > 0 {
			return names
		}
	}
	return nil
}

// wait is the state of another job that a job waits for.
type wait int

const (
	ready wait = iota + 1
	complete
)

// awaitedBy are the jobs that must be ready or complete before the named one starts, directly or through others. A job
// awaited in both ways is awaited complete.
func awaitedBy(spec jobsetv1alpha2.JobSetSpec, name string) map[string]wait {
	awaited := map[string]wait{}
	var visit func(name string, how wait)
	visit = func(name string, how wait) {
		for _, dependency := range dependencies(spec, name) {
			next := how
			if dependency.Status == jobsetv1alpha2.DependencyComplete {
				next = complete
			}
			if awaited[dependency.Name] < next {
				awaited[dependency.Name] = next
				visit(dependency.Name, next)
			}
		}
	}
	visit(name, ready)
	return awaited
}

// dependencies returns the jobs that the named job waits for directly. Startup in order is the older setting for jobs
// that each wait until the previous one is ready.
func dependencies(spec jobsetv1alpha2.JobSetSpec, name string) []jobsetv1alpha2.DependsOn {
	i := position(spec.ReplicatedJobs, name)
	if i < 0 {
		return nil
	}
	ordered := spec.StartupPolicy != nil && spec.StartupPolicy.StartupPolicyOrder == jobsetv1alpha2.InOrder
	if i > 0 && ordered {
		return []jobsetv1alpha2.DependsOn{
			{Name: spec.ReplicatedJobs[i-1].Name, Status: jobsetv1alpha2.DependencyReady},
		}
	}
	return spec.ReplicatedJobs[i].DependsOn
}

// initializes reports whether the named job fetches something for the others, and so is not one of them however it is
// awaited.
func initializes(jobs []jobsetv1alpha2.ReplicatedJob, name string) bool {
	i := position(jobs, name)
	return i >= 0 && slices.Contains([]string{
		trainerv1alpha1.AncestorDatasetInitializer, trainerv1alpha1.AncestorModelInitializer,
	}, ancestor(jobs[i]))
}
