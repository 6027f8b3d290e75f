package snapshot_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

func daemonSet(apiVersion string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: "DaemonSet", Name: "logs", Controller: new(true)}}
}

// A gang is as important as the least important of its pods, whatever its PodGroup says: a pod of any class may join
// it, and quotas of a class count pods. A pod of a DaemonSet among them protects none of the others.
func TestView_ContenderOfAGangWithOtherPods(t *testing.T) {
	of := make(groups)
	of["g"] = group(map[string]string{})
	of["g"].Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1}
	of["g"].Spec.Priority = new(int32(1000))
	member := func(name string, priority int32) *corev1.Pod {
		p := pod(name, list("1", "1"))
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("g")}
		p.Spec.Priority = &priority
		return p
	}
	first := member("a", 1000)
	first.OwnerReferences, first.Spec.RestartPolicy = daemonSet("apps/v1"), corev1.RestartPolicyAlways
	view := update(
		t, snapshot.NewIndex(nil, "", nodehealth.Rules{}),
		[]fwk.NodeInfo{info(node("n", "c"), first, member("b", 0))}, []corev1.ResourceName{gpu},
	)
	for _, u := range view.Contenders(of, snapshot.Reading{}).All() {
		if u.Priority != 0 || !u.Preemptible || u.End.Certainty == contention.Never {
			t.Errorf("priority %d, preemptible %t, end %v", u.Priority, u.Preemptible, u.End)
		}
	}
}

// The end and the preemption policy that a pod, or its gang, declares.
func TestView_ContendersReadEndsAndPreemption(t *testing.T) {
	started := metav1.NewTime(time.Unix(1_000_000, 0))
	for name, c := range map[string]struct {
		gang   map[string]string // annotations; nil for a single pod
		change func(p *corev1.Pod)
		want   contention.Unit
	}{
		"a single pod": {
			change: func(*corev1.Pod) {},
			want:   contention.Unit{Preemptible: true, Grace: 30},
		},
		"a deadline": {
			change: func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(600)) },
			want: contention.Unit{
				Preemptible: true, Grace: 30, End: contention.End{At: 1_000_600, Certainty: contention.Certain},
			},
		},
		"a service": {
			change: func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways },
			want:   contention.Unit{Preemptible: true, Grace: 30, End: contention.End{Certainty: contention.Never}},
		},
		"a service in a gang": {
			gang:   map[string]string{},
			change: func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways },
			want:   contention.Unit{Preemptible: true, Grace: 30, End: contention.End{Certainty: contention.Never}},
		},
		"a gang without an end": {
			gang:   map[string]string{},
			change: func(*corev1.Pod) {},
			want:   contention.Unit{Preemptible: true, Grace: 30},
		},
		"a gang that reports": {
			gang: map[string]string{
				topology.AnnotationExpectedEnd:    "1970-01-12T14:00:00Z",
				topology.AnnotationLastCheckpoint: "1970-01-12T13:50:00Z",
			},
			change: func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(300)) },
			want: contention.Unit{
				Preemptible: true, Grace: 300, Saved: 1_000_200,
				End: contention.End{At: 1_000_800, Certainty: contention.Reported},
			},
		},
		"a gang that leaves before its reported end": {
			gang: map[string]string{topology.AnnotationExpectedEnd: "1970-01-12T14:00:00Z"},
			change: func(p *corev1.Pod) {
				p.DeletionTimestamp = new(metav1.NewTime(time.Unix(1_000_300, 0)))
				p.Spec.TerminationGracePeriodSeconds = new(int64(300))
			},
			want: contention.Unit{
				Preemptible: true, Grace: 300, Leaving: true,
				End: contention.End{At: 1_000_300, Certainty: contention.Certain},
			},
		},
		"a protected class": {
			change: func(p *corev1.Pod) { p.Spec.PriorityClassName = "gold" },
			want:   contention.Unit{Grace: 30},
		},
		"a gang whose owner creates no member again": {
			gang:   map[string]string{topology.AnnotationOnLoss: topology.OnLossGone},
			change: func(*corev1.Pod) {},
			want:   contention.Unit{Preemptible: true, Grace: 30},
		},
		"a gang whose owner starts all of it again": {
			gang:   map[string]string{topology.AnnotationOnLoss: "restarted"},
			change: func(*corev1.Pod) {},
			want:   contention.Unit{Preemptible: true, Grace: 30},
		},
		"a static pod": {
			change: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
			want:   contention.Unit{Grace: 30, End: contention.End{Certainty: contention.Never}},
		},
		"a pod of a DaemonSet": {
			change: func(p *corev1.Pod) { p.OwnerReferences = daemonSet("apps/v1") },
			want:   contention.Unit{Grace: 30, End: contention.End{Certainty: contention.Never}},
		},
		// A reference to a group that no controller resolves proves nothing: a tenant could write it, and would never
		// be preempted.
		"a pod of a DaemonSet of another group": {
			change: func(p *corev1.Pod) { p.OwnerReferences = daemonSet("evil.example/v1") },
			want:   contention.Unit{Preemptible: true, Grace: 30},
		},
		"a pod of a DaemonSet without a group": {
			change: func(p *corev1.Pod) { p.OwnerReferences = daemonSet("") },
			want:   contention.Unit{Preemptible: true, Grace: 30},
		},
		"one that leaves": {
			change: func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Unix(1_000_050, 0)) },
			want: contention.Unit{
				Preemptible: true, Grace: 30, Leaving: true,
				End: contention.End{At: 1_000_050, Certainty: contention.Certain},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			of, p := make(groups), pod("p", list("1", "2"))
			p.Spec.RestartPolicy, p.Status.StartTime = corev1.RestartPolicyNever, &started
			if c.gang != nil {
				group := group(c.gang)
				group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1}
				of["g"], p.Spec.SchedulingGroup = group, &corev1.PodSchedulingGroup{PodGroupName: new("g")}
			}
			c.change(p)
			view := update(
				t,
				snapshot.NewIndex(nil, "", nodehealth.Rules{}),
				[]fwk.NodeInfo{info(node("n", "c"), p)},
				[]corev1.ResourceName{gpu},
			)
			reading := snapshot.Reading{
				Accelerators: []corev1.ResourceName{gpu}, Protected: func(class string) bool { return class == "gold" },
			}
			units := view.Contenders(of, reading)
			if units.Len() != 1 {
				t.Fatalf("%d units run", units.Len())
			}
			for _, u := range units.All() {
				got := *u
				got.ID, got.Holds = "", nil
				want := c.want
				want.Accelerators, want.Started = 2, 1_000_000
				if got.End != want.End || got.Preemptible != want.Preemptible || got.Grace != want.Grace ||
					got.Saved != want.Saved || got.Leaving != want.Leaving || got.Accelerators != want.Accelerators ||
					got.Started != want.Started {
					t.Errorf("it is read as %+v, want %+v", got, want)
				}
			}
		})
	}
}
