package migrate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// runPolicy is the old operators' configuration of a job's life.
type runPolicy struct {
	CleanPodPolicy          *string           `json:"cleanPodPolicy"`
	TTLSecondsAfterFinished *int32            `json:"ttlSecondsAfterFinished"`
	ActiveDeadlineSeconds   *int64            `json:"activeDeadlineSeconds"`
	BackoffLimit            *int32            `json:"backoffLimit"`
	Suspend                 *bool             `json:"suspend"`
	ManagedBy               *string           `json:"managedBy"`
	SchedulingPolicy        *schedulingPolicy `json:"schedulingPolicy"`
}

// schedulingPolicy is the part that they handed to a gang scheduler.
type schedulingPolicy struct {
	MinAvailable           *int32              `json:"minAvailable"`
	Queue                  string              `json:"queue"`
	MinResources           corev1.ResourceList `json:"minResources"`
	PriorityClass          string              `json:"priorityClass"`
	ScheduleTimeoutSeconds *int32              `json:"scheduleTimeoutSeconds"`
}

// oldManagers are the names under which the old operators were responsible for a job.
func oldManagers() []string {
	return []string{"kubeflow.org/training-operator", "kubeflow.org/mpi-operator"}
}

// runPolicyAt returns the path of a job's run policy.
func runPolicyAt() path { return at("spec", "runPolicy") }

// live applies the run policy. The pod templates must be there already.
func (p *page) live(s *successor, policy runPolicy) error {
	where := runPolicyAt()
	if policy.CleanPodPolicy != nil {
		p.cleanPods(where.child("cleanPodPolicy"), *policy.CleanPodPolicy)
	}
	if ttl := policy.TTLSecondsAfterFinished; ttl != nil {
		s.jobSet().TTLSecondsAfterFinished = new(*ttl)
		p.note(where.child("ttlSecondsAfterFinished"),
			"it is the JobSet template's now: the JobSet and its pods are deleted after that time, the TrainJob stays")
	}
	if deadline := policy.ActiveDeadlineSeconds; deadline != nil {
		if *deadline < 1 {
			return p.bad(where.child("activeDeadlineSeconds"), "activeDeadlineSeconds is below 1", "write at least 1")
		}
		s.job.Spec.ActiveDeadlineSeconds = *deadline
	}
	if limit := policy.BackoffLimit; limit != nil {
		s.restarts(*limit)
		p.note(where.child("backoffLimit"), fmt.Sprintf("it is the JobSet template's failurePolicy.maxRestarts now: "+
			"the whole job starts again, up to %d times, when a pod fails", *limit))
	}
	s.job.Spec.Suspend = policy.Suspend
	if by := policy.ManagedBy; by != nil {
		if slices.Contains(managers(), *by) {
			s.job.Spec.ManagedBy = new(*by)
		} else if slices.Contains(oldManagers(), *by) {
			p.note(where.child("managedBy"), *by+" is left out: Lockstep's controller is responsible")
		} else {
			p.note(
				where.child("managedBy"),
				*by+" is left out: a TrainJob can only be managed by Lockstep's controller or by "+
					"kueue.x-k8s.io/multikueue",
			)
		}
	}
	if policy.SchedulingPolicy != nil {
		p.schedule(s, *policy.SchedulingPolicy)
	}
	return nil
}

// cleanPods notes the treatment of a finished job's pods.
func (p *page) cleanPods(where path, policy string) {
	const now = "the JobSet ends what still runs and keeps the finished pods"
	if policy == "Running" {
		p.note(where, "Running is left out: "+now+", which is the same")
		return
	}
	p.note(where, policy+" is left out: "+now+" until it is deleted (ttlSecondsAfterFinished)")
}

// schedule converts the settings for a gang scheduler.
func (p *page) schedule(s *successor, policy schedulingPolicy) {
	where := at("spec", "runPolicy", "schedulingPolicy")
	if policy.MinAvailable != nil {
		p.note(where.child("minAvailable"), "left out: a gang starts whole, so it is the number of its pods")
	}
	if policy.Queue != "" {
		p.note(
			where.child("queue"),
			policy.Queue+" is left out: Lockstep has no queues; for Kueue, label the TrainJob "+
				"kueue.x-k8s.io/queue-name",
		)
	}
	if policy.MinResources != nil {
		p.note(where.child("minResources"), "left out: a gang starts whole, so it is the sum of what its pods ask for")
	}
	if policy.ScheduleTimeoutSeconds != nil {
		p.note(
			where.child("scheduleTimeoutSeconds"),
			"left out: a gang that does not fit waits without holding anything",
		)
	}
	if policy.PriorityClass == "" {
		return
	}
	jobs := s.jobSet().ReplicatedJobs
	for i := range jobs {
		pod := &jobs[i].Template.Spec.Template.Spec
		switch pod.PriorityClassName {
		case policy.PriorityClass:
		case "":
			pod.PriorityClassName = policy.PriorityClass
			p.note(where.child("priorityClass"), "it is priorityClassName of the pods of "+jobs[i].Name+
				" now, from which the gang takes it")
		default:
			p.note(where.child("priorityClass"), policy.PriorityClass+" is left out: the pods of "+jobs[i].Name+
				" say priorityClassName "+pod.PriorityClassName+", from which the gang takes it")
		}
	}
}
