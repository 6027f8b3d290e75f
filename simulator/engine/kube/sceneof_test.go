package kube_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/contention/contentiontest"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// played is a scene of the machine as engines play it.
type played struct {
	contentiontest.Scene

	// until is the last instant of the script, begin that of the scenario, in seconds of the script.
	until, begin int64
	of           *scenario.Scenario
	// discipline is that of all jobs.
	discipline contention.Discipline
}

// arrives reports whether a job arrives in the scenario. Jobs that run when the scene begins and that may be preempted,
// or have members that wait, arrive too: at the instant at which the scene has them started. All others are objects of
// a snapshot.
func arrives(j contentiontest.Job) bool { return j.On == nil || j.Preemptible || len(j.On) < j.Members }

// sentinel is a job that arrives after the last instant of the script: its arrival stops the engine.
const sentinel = "sentinel"

// endless exceeds all run times and instants of scripts.
const endless = 365 * 24 * time.Hour

// scenarioOf returns the scenario of a scene: a snapshot of a cluster with its running units, and a trace of the jobs
// that arrive.
func scenarioOf(t *testing.T, s contentiontest.Scene, until int64) played {
	t.Helper()
	p := played{Scene: s, until: until, begin: until}
	for _, j := range s.Jobs {
		if arrives(j) {
			p.begin = min(p.begin, j.Arrives)
		}
	}
	for _, e := range s.Events {
		p.begin = min(p.begin, e.At)
	}
	snap := &capture.Snapshot{Nodes: nodesOf(s)}
	snap.Manifest.Taken = p.date(p.begin)
	for _, kind := range []string{"nodes", "pods", "podgroups"} {
		snap.Manifest.Kinds = append(snap.Manifest.Kinds, capture.Kind{Resource: kind, State: capture.Captured})
	}
	tr := trace.Trace{Name: "scene", Synthetic: true}
	running := make(map[string]contentiontest.Job)
	for _, j := range s.Jobs {
		if arrives(j) {
			tr.Jobs = append(tr.Jobs, p.traced(j))
			continue
		}
		running["default/"+j.Name] = j
		p.occupy(snap, j)
	}
	tr.Jobs = append(tr.Jobs, trace.Job{
		ID: sentinel, Submit: p.offset(until + 1), Duration: time.Second,
		Podsets: []trace.Podset{{Count: 1, GPUs: 1}}, Priority: -1 << 30,
	})
	var err error
	if p.of, err = importer.FromSnapshot(snap, &tr, scenario.Options{}); err != nil {
		t.Fatal(err)
	}
	for i := range p.of.Running { // a snapshot knows of no end but the expected one
		r := &p.of.Running[i]
		j := running[r.Name]
		// Negative for a unit that the scene has started later: it is there from the beginning, but no older.
		r.Ends, r.Ran = scenario.Forever, -p.offset(j.Arrives)
		if j.Runs != contention.None {
			r.Ends = p.offset(j.Arrives + j.Runs)
		}
	}
	for i := range p.of.Jobs {
		j := &p.of.Jobs[i]
		if at := slices.IndexFunc(s.Jobs, func(of contentiontest.Job) bool { return of.Name == j.ID }); at >= 0 {
			j.NeverPreempts, j.Bound = s.Jobs[at].NeverPreempts, s.Jobs[at].Pinned
		}
	}
	p.addEvents(t)
	if len(p.of.Running) != len(running) {
		t.Fatalf("%d units run, want %d; %v", len(p.of.Running), len(running), p.of.Notes)
	}
	return p
}

// addEvents adds the events of the scene.
func (p played) addEvents(t *testing.T) {
	t.Helper()
	kinds := map[contentiontest.EventKind]trace.Kind{
		contentiontest.Fail: trace.Fail, contentiontest.Return: trace.Return,
		contentiontest.Cordon: scenario.Cordon, contentiontest.Extend: scenario.Extend,
		contentiontest.Suspend: scenario.Suspend, contentiontest.Restore: scenario.Restore,
		contentiontest.Resume: scenario.Resume,
	}
	for _, e := range p.Events {
		event := scenario.Event{At: p.offset(e.At), Kind: kinds[e.Kind], Nodes: slices.Sorted(slices.Values(e.Nodes))}
		switch e.Kind {
		case contentiontest.Suspend, contentiontest.Restore, contentiontest.Resume:
			event.Job = slices.IndexFunc(p.of.Jobs, func(j scenario.Job) bool { return j.ID == e.Job })
			if e.Kind == contentiontest.Suspend && !p.comesBack(e) {
				event.Kind = scenario.Withdraw
			}
		case contentiontest.Extend:
			event.Running = slices.IndexFunc(p.of.Running, func(r scenario.Running) bool {
				return r.Name == "default/"+e.Job
			})
			if event.Running < 0 {
				t.Fatalf("%s does not run from the beginning", e.Job)
			}
		default:
		}
		p.of.Events = append(p.of.Events, event)
	}
	slices.SortStableFunc(p.of.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
}

// comesBack reports whether a suspended job is restored or resumed later. One that is not gives up.
func (p played) comesBack(suspended contentiontest.Event) bool {
	return slices.ContainsFunc(p.Events, func(e contentiontest.Event) bool {
		return e.Job == suspended.Job && e.At >= suspended.At &&
			(e.Kind == contentiontest.Restore || e.Kind == contentiontest.Resume)
	})
}

// date is an instant of the script as a date.
func (played) date(at int64) time.Time { return time.Unix(20_454*24*3600+at, 0).UTC() }

// offset is an instant of the script since the scenario's beginning.
func (p played) offset(at int64) time.Duration { return time.Duration(at-p.begin) * time.Second }

// at is an instant of the scenario in seconds of the script.
func (p played) at(offset time.Duration) int64 { return p.begin + int64(offset/time.Second) }

// usualCPUs is the number of CPUs of a node in a scene without CPUs.
const usualCPUs = 96

// nodesOf returns the nodes of the fleet. Their cliques are NVLink cliques.
func nodesOf(s contentiontest.Scene) []*corev1.Node {
	var out []*corev1.Node
	cpus := cmp.Or(int64(s.CPUs), usualCPUs)
	for c := range s.Cliques {
		for range s.Nodes {
			name := contentiontest.NodeName(len(out))
			has := corev1.ResourceList{
				corev1.ResourcePods: resource.MustParse(
					"110",
				),
				corev1.ResourceCPU:    *resource.NewQuantity(cpus, resource.DecimalSI),
				corev1.ResourceMemory: resource.MustParse("1Ti"),
				"nvidia.com/gpu":      *resource.NewQuantity(int64(s.GPUs), resource.DecimalSI),
			}
			out = append(out, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
					corev1.LabelHostname: name, "nvidia.com/gpu.clique": fmt.Sprintf("fabric.%d", c+1),
				}},
				Status: corev1.NodeStatus{
					Capacity: has, Allocatable: has.DeepCopy(),
					Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				},
			})
		}
	}
	return out
}

// traced returns a job that arrives.
func (p played) traced(j contentiontest.Job) trace.Job {
	out := trace.Job{
		ID: j.Name, Submit: p.offset(j.Arrives), Duration: endless, Priority: j.Priority, Preemptible: j.Preemptible,
		Grace:    time.Duration(j.Grace) * time.Second,
		Required: j.Require, Estimate: time.Duration(j.Says) * time.Second,
		Podsets: []trace.Podset{{Count: j.Members, Min: j.Min, GPUs: j.GPUs, CPU: int64(j.CPUs) * 1000}},
		Sweep:   j.Sweep, Parallelism: j.Limit,
	}
	if j.Runs != contention.None {
		out.Duration = time.Duration(j.Runs) * time.Second
	}
	return out
}

// occupy adds the PodGroup and the pods of a job that runs.
func (p played) occupy(snap *capture.Snapshot, j contentiontest.Job) {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: j.Name, UID: types.UID(j.Name), Annotations: make(map[string]string),
		CreationTimestamp: metav1.NewTime(p.date(j.Arrives)),
	}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(len(j.On))}
	group.Spec.Priority = &j.Priority
	if j.Says > 0 {
		group.Annotations[topology.AnnotationExpectedEnd] = p.date(j.Arrives + j.Says).Format(time.RFC3339)
	}
	snap.PodGroups = append(snap.PodGroups, group)
	restarts := corev1.RestartPolicyNever
	if j.Certainty == contention.Never {
		restarts = corev1.RestartPolicyAlways
	}
	for rank, node := range j.On {
		requests := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(j.GPUs), resource.DecimalSI)}
		if j.CPUs > 0 {
			requests[corev1.ResourceCPU] = *resource.NewQuantity(int64(j.CPUs), resource.DecimalSI)
		}
		name, started := scenario.PodName(j.Name, rank), metav1.NewTime(p.date(j.Arrives))
		snap.Pods = append(snap.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: started,
			},
			Spec: corev1.PodSpec{
				NodeName: contentiontest.NodeName(node), RestartPolicy: restarts, Priority: &j.Priority,
				SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group.Name},
				Containers: []corev1.Container{{
					Name: "node", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
				}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started},
		})
	}
}
