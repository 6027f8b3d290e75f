package faults

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
)

// beginFault has a fault begin, and end when it is over.
func (w *world) beginFault(f Fault) {
	w.note("! %s", f)
	if over := w.now().Add(f.For); over.After(w.quiet) {
		w.quiet = over
	}
	end := func(do func()) {
		w.lasting++
		if f.Kind.hinders() {
			w.hindered++
		}
		w.after(f.For, func() {
			w.lasting--
			if f.Kind.hinders() {
				w.hindered--
			}
			w.note("! over: %s", f)
			do()
		})
	}
	switch f.Kind {
	case Crash, DeletePod:
		w.loseRank(f)
	case Suspend:
		w.suspend(f.Job, true)
		end(func() { w.suspend(f.Job, false) })
	case Scale:
		w.scale(f.Job, f.Ranks)
		end(func() { w.scale(f.Job, w.work.size(f.Job)) })
	case DeleteJob:
		w.deleted[f.Job] = true
		w.deleteNative(f.Job)
		_ = w.server.Delete("TrainJob", types.NamespacedName{Namespace: namespace, Name: f.Job}, metav1.DeleteOptions{})
	case LoseNode:
		w.stage.Lose(w.scene.nodeName(f.Node))
		end(func() { w.stage.Return(w.scene.nodeName(f.Node)) })
	case RemoveNode:
		w.removeNode(f, end)
	case Cordon:
		w.stage.Cordon(w.scene.nodeName(f.Node), true)
		end(func() { w.stage.Cordon(w.scene.nodeName(f.Node), false) })
	case CordonAll:
		w.cordonAll(true)
		end(func() { w.cordonAll(false) })
	case Thief:
		w.thief(f, end)
	case Kill:
		w.killNamed(f, end)
	case Refuse, Drop, Forget, Slow:
		w.troubled[f.Process] = append(w.troubled[f.Process], f)
		end(func() {
			w.troubled[f.Process] = slices.DeleteFunc(
				w.troubled[f.Process],
				func(other Fault) bool { return other == f },
			)
		})
	case Cut, List:
		w.cut(f, end)
	case Skew:
		w.skew[f.Process] = skews
		end(func() { w.skew[f.Process] = 0 })
	}
}

// skews is the time by which a clock is ahead. When that is over it stands still until the others have caught up.
const skews = 45 * time.Second

func (w *world) loseRank(f Fault) {
	j := w.work.jobs[f.Job]
	name, ok := j.ranks[f.Rank]
	if !ok {
		return
	}
	if f.Kind == Crash {
		w.stage.Exit(name, j.uids[f.Rank], f.Code)
		return
	}
	_ = w.server.Delete("Pod", name, metav1.DeleteOptions{})
}

// suspend suspends a job, or resumes it.
func (w *world) suspend(name string, suspended bool) {
	w.suspendNative(name, suspended)
	found, err := w.server.Get("TrainJob", types.NamespacedName{Namespace: namespace, Name: name})
	job, ok := found.(*trainerv1alpha1.TrainJob)
	if err != nil || !ok || job.Ended() {
		return
	}
	next := job.DeepCopy()
	next.Spec.Suspend = &suspended
	_, err = w.server.Update(next, "")
	w.must(err)
}

func (w *world) removeNode(f Fault, end func(func())) {
	name := w.scene.nodeName(f.Node)
	if _, err := w.server.Get("Node", types.NamespacedName{Name: name}); err != nil {
		return
	}
	w.stage.Delete(name)
	end(func() {
		if _, err := w.server.Get("Node", types.NamespacedName{Name: name}); err != nil {
			w.addNode(f.Node)
		}
	})
}

func (w *world) cordonAll(closed bool) {
	for at := range w.scene.Racks * w.scene.PerRack {
		w.stage.Cordon(w.scene.nodeName(at), closed)
	}
}

// killNamed ends a process. Of schedulers the one that stands by leads, or the next one when it is there.
func (w *world) killNamed(f Fault, end func(func())) {
	if f.Process == schedulerName {
		if w.leader == nil {
			return
		}
		w.leader.die()
		next := w.startScheduler()
		end(func() {
			if w.leader == nil {
				next.lead()
			}
		})
		w.schedulers = append(w.schedulers, next)
		return
	}
	for _, p := range w.processes {
		if p.name == f.Process {
			w.note("%s dies", p.name)
			w.kill(p)
			end(func() { w.start(f.Process) })
			return
		}
	}
}

// start starts a controller unless there is one.
func (w *world) start(name string) {
	if slices.ContainsFunc(w.processes, func(p *process) bool { return p.name == name }) {
		return
	}
	switch name {
	case controllerName:
		w.startController()
	case jobsetName:
		w.startJobSet()
	}
}

// cut cuts the watches of all processes of a name.
func (w *world) cut(f Fault, end func(func())) {
	var feeds []*feed
	for _, p := range w.processes {
		if p.name != f.Process {
			continue
		}
		for _, of := range p.feeds {
			if !of.cut {
				of.cut = true
				feeds = append(feeds, of)
			}
		}
	}
	end(func() {
		if f.Kind == List {
			w.server.Compact()
		}
		for _, of := range feeds {
			lag := w.chance.delay(watchLag, "resume", of.kind)
			w.after(lag, func() { of.process.soon(of.resume) })
		}
	})
}

// bindings begins the faults that wait for a binding.
func (w *world) bindings(e apiserver.Event) {
	old, _ := e.Old.(*corev1.Pod)
	pod, ok := e.New.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || old == nil || old.Spec.NodeName != "" {
		return
	}
	job := jobOfPod(pod)
	w.bound[job]++
	for _, f := range w.scene.Faults {
		if f.Bound > 0 && f.Job == job && f.Bound == w.bound[job] {
			w.after(0, func() { w.beginFault(f) })
		}
	}
}
