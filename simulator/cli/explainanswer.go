package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/simulator/explain"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// listed is the number of names that an error lists.
const listed = 5

// answer answers a question.
func (s *scene) answer(ctx context.Context, q question) (explain.Answer, error) {
	out := explain.Answer{At: s.now, Notes: slices.Clone(s.notes)}
	if q.kind == "drain" {
		displaced, err := s.whatif.Drain(ctx, q.words)
		if err != nil {
			return out, inSelection(err)
		}
		out.Drain = explain.AboutDrain(displaced, s.now)
		return out, nil
	}
	forecast, err := explain.NewForecast(ctx, s.whatif)
	if err != nil {
		return out, fmt.Errorf("looking ahead: %w", err)
	}
	changes, err := s.changes(ctx, forecast)
	if err != nil {
		return out, err
	}
	out.Notes = append(out.Notes, changes...)
	if q.kind == "queue" {
		verdicts, err := s.whatif.Queue(ctx)
		if err != nil {
			return out, fmt.Errorf("running the queue: %w", err)
		}
		out.Queue = explain.AboutQueue(verdicts, forecast, s.now)
		return out, nil
	}
	names, job, err := s.meant(q)
	if err != nil {
		return out, err
	}
	out.Job = job
	for _, name := range names {
		verdict, err := s.whatif.Why(ctx, name)
		if err != nil {
			return out, s.notThere("podgroup", name, err)
		}
		about := explain.About(verdict, forecast, s.now)
		about.Mark = s.mark(name)
		out.Gangs = append(out.Gangs, about)
	}
	return out, nil
}

// mark returns the mark by which the pods of a gang name it.
func (s *scene) mark(gang types.NamespacedName) *explain.Mark {
	for _, group := range s.snapshot.PodGroups {
		if group.Namespace != gang.Namespace || group.Name != gang.Name {
			continue
		}
		for _, pod := range s.snapshot.Pods {
			if pod.Namespace == gang.Namespace && gangapi.GroupOf(pod.ObjectMeta, pod.Spec) == gang.Name {
				return explain.MarkOf(s.snapshot.Marks(gang.Namespace), group, pod)
			}
		}
	}
	return nil
}

// changes describes the effect of the added jobs on other gangs.
func (s *scene) changes(ctx context.Context, after *explain.Forecast) ([]string, error) {
	if s.before == nil {
		return nil, nil
	}
	before, err := explain.NewForecast(ctx, s.before)
	if err != nil {
		return nil, fmt.Errorf("looking ahead: %w", err)
	}
	own, _, err := s.submitted("")
	if err != nil {
		return nil, err
	}
	lines := before.Changes(after, own, s.now)
	if more := len(lines) - listed; more > 0 {
		lines = append(lines[:listed], fmt.Sprintf("and %d more would start at another time", more))
	}
	for i := range lines {
		lines[i] = "with the jobs that were added, " + lines[i]
	}
	return lines, nil
}

// meant returns the gangs of a question, or the answer about a job that has no gang.
func (s *scene) meant(q question) ([]types.NamespacedName, *explain.Job, error) {
	if q.kind == "" {
		return s.submitted("")
	}
	name := types.NamespacedName{Namespace: s.namespace, Name: q.words[0]}
	if q.kind == "podgroup" {
		if job := s.cluster.Owner(name); job != nil && job.Ended() {
			return nil, s.without(job), nil
		}
		return []types.NamespacedName{name}, nil, nil
	}
	job := s.cluster.Job(name)
	if job == nil {
		names, said, err := s.submitted(name.String())
		if err == nil && len(names) == 0 && said == nil {
			err = s.notThere("trainjob", name, whatif.ErrNoGang)
		}
		return names, said, err
	}
	var names []types.NamespacedName
	for _, group := range s.cluster.Groups(job) {
		if group.Spec.SchedulingPolicy.Gang != nil {
			names = append(names, types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
		}
	}
	if len(names) > 0 {
		return names, nil, nil
	}
	return nil, s.without(job), nil
}

// without is the answer about a job that has no gang to ask about.
func (s *scene) without(job *trainerv1alpha1.TrainJob) *explain.Job {
	phase, sentence, starts := s.cluster.Why(job)
	return &explain.Job{
		Name: job.Namespace + "/" + job.Name, State: string(phase), Answer: sentence, Starts: starts,
	}
}

// submitted are the gangs of the jobs that were added, or of one of them.
func (s *scene) submitted(only string) ([]types.NamespacedName, *explain.Job, error) {
	var names []types.NamespacedName
	var said *explain.Job
	for _, job := range s.added {
		if only != "" && job.Name.String() != only {
			continue
		}
		if len(job.Groups) == 0 {
			said = &explain.Job{
				Name: job.Name.String(), State: "ungrouped", Starts: true,
				Answer: "is no gang: its pods start one by one, each where the scheduler finds room",
			}
		}
		for _, group := range job.Groups {
			if group.PodGroup.Spec.SchedulingPolicy.Gang != nil {
				names = append(
					names,
					types.NamespacedName{Namespace: group.PodGroup.Namespace, Name: group.PodGroup.Name},
				)
			}
		}
	}
	return names, said, nil
}

// notThere lists the names that are most like one that is not there.
func (s *scene) notThere(kind string, name types.NamespacedName, cause error) error {
	if !errors.Is(cause, whatif.ErrNoGang) {
		return fmt.Errorf("explaining %s: %w", name, cause)
	}
	all := s.whatif.Names()
	what := fmt.Sprintf("%s has no gang %s", s.source, name)
	if kind == "trainjob" {
		all, what = s.cluster.Names(), fmt.Sprintf("%s has no TrainJob %s", s.source, name)
	}
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.String()
	}
	mend := "there are none at all"
	if len(names) > 0 {
		mend = "the nearest names: " + strings.Join(explain.Nearest(name.String(), names, listed), ", ")
	}
	return &badinput.Error{Where: kind + " " + name.Name, What: what, Mend: mend}
}

// inSelection adds the valid choices to a selection error.
func inSelection(err error) error {
	unclear, ok := errors.AsType[*whatif.SelectionError](err)
	if !ok {
		return fmt.Errorf("draining: %w", err)
	}
	_, value, isDomain := strings.Cut(unclear.Word, "=")
	if !isDomain {
		value = unclear.Word
	}
	mend := "there are no " + unclear.Of
	if len(unclear.Known) > 0 {
		mend = unclear.Of + ": " + strings.Join(explain.Nearest(value, unclear.Known, listed), ", ")
	}
	return &badinput.Error{Where: "drain " + unclear.Word, What: unclear.What, Mend: mend}
}
