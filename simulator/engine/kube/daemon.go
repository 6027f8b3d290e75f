package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/engine/stepped"
)

// bindDaemon creates the pods of a DaemonSet, each on its node: it is bound, and runs.
func (w *world) bindDaemon(i int) error {
	j, of := &w.jobs[i], &w.scene.Jobs[i]
	j.times++
	w.starts++
	j.runs, j.number, j.nodes, j.bound = true, w.starts, of.Bound, len(of.Bound)
	w.quiet = w.clock.Now()
	w.ends.add(end{at: w.since() + of.Duration, of: owner{i, engine.None}, number: j.number, times: j.times})
	w.watcher.Happens(engine.Event{
		At: w.since(), Kind: engine.Started, Job: i, Running: engine.None, Nodes: of.Bound,
	})
	now := metav1.NewTime(w.clock.Now())
	for rank, node := range of.Bound {
		pod := w.podFor(i, rank, nil)
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet", Name: of.ID, UID: types.UID(of.ID),
			Controller: new(true),
		}}
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
		pod.Spec.NodeName, pod.Spec.RestartPolicy = w.scene.Ledger.Tree.Node(node), corev1.RestartPolicyAlways
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
		w.podRanks[stepped.NameOf(pod)] = podRank{owner{i, engine.None}, rank}
		if err := w.pods.Add(pod); err != nil {
			return err
		}
	}
	w.clock.Nudge()
	return nil
}
