package plan

import (
	"slices"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// membership decides which ReplicatedJobs start together.
//
// Out are those that must be complete before a member starts (initializers), and those that start only after the
// trainer is complete (an evaluation): waiting for them would be waiting for ever. Late are members that start once
// other members are ready (an MPI launcher): they belong to the gang but cannot be counted before it runs.
func membership(jobs []jobsetv1alpha2.ReplicatedJob) (members, late []string) {
	core := trainers(jobs)
	var starters []string
	for _, job := range jobs {
		awaited := awaitedBy(jobs, job.Name)
		if !slices.ContainsFunc(core, func(name string) bool { return awaited[name] == complete }) {
			starters = append(starters, job.Name)
		}
	}
	done := map[string]bool{}
	for _, name := range starters {
		for awaited, how := range awaitedBy(jobs, name) {
			done[awaited] = done[awaited] || how == complete
		}
	}
	for _, name := range starters {
		if !done[name] {
			members = append(members, name)
		}
	}
	for _, name := range members {
		awaited := awaitedBy(jobs, name)
		if slices.ContainsFunc(members, func(other string) bool { return awaited[other] == ready }) {
			late = append(late, name)
		}
	}
	return members, late
}

// trainers are the jobs that train: by ancestor, else by name, else all that do not fetch something.
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

// wait is what a job waits for another job to be.
type wait int

const (
	ready wait = iota + 1
	complete
)

// awaitedBy are the jobs that must be ready or complete before the named one starts, directly or through others. A job
// awaited in both ways is awaited complete.
func awaitedBy(jobs []jobsetv1alpha2.ReplicatedJob, name string) map[string]wait {
	awaited := map[string]wait{}
	var visit func(name string, how wait)
	visit = func(name string, how wait) {
		i := position(jobs, name)
		if i < 0 {
			return
		}
		for _, dependency := range jobs[i].DependsOn {
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
