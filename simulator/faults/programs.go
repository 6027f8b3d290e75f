package faults

import (
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// programs are those in the pods: training that continues while all ranks of a job run, and saves its work.
type programs struct {
	world *world
	jobs  map[string]*program
}

// program is that of a job.
type program struct {
	ranks map[int]types.NamespacedName
	uids  map[int]types.UID
	// size is the number of its ranks, need the number that it needs now that it may be scaled.
	size, need int
	left       time.Duration
	// since is the time at which all ranks began to run; zero if some do not. turn counts the times that they did, or
	// stopped.
	since time.Time
	turn  int
}

func newPrograms(w *world) *programs {
	p := &programs{world: w, jobs: make(map[string]*program)}
	for _, j := range w.scene.Jobs {
		p.jobs[j.Name] = &program{
			ranks: make(
				map[int]types.NamespacedName,
			),
			uids: make(map[int]types.UID),
			size: j.Nodes,
			need: j.Nodes,
			left: j.Runs,
		}
	}
	return p
}

func (p *programs) of(pod *corev1.Pod) (*program, int) {
	rank, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return nil, 0
	}
	return p.jobs[jobOfPod(pod)], rank
}

// Runs implements stage.Work.
func (p *programs) Runs(pod *corev1.Pod) {
	j, rank := p.of(pod)
	if j == nil {
		return
	}
	j.ranks[rank], j.uids[rank] = client.ObjectKeyFromObject(pod), pod.UID
	if j.left <= 0 { // others have ended: it finds only the last checkpoint
		p.exit(j, rank)
		return
	}
	p.train(jobOfPod(pod), j)
}

// train continues a job's work if all ranks run.
func (p *programs) train(name string, j *program) {
	if !j.isWhole() || !j.since.IsZero() {
		return
	}
	j.turn++
	turn := j.turn
	j.since = p.world.now()
	p.world.note("%s trains", name)
	p.world.after(j.left, func() {
		if j.turn == turn {
			p.end(j)
		}
	})
}

// isWhole reports whether all ranks run. Some of a job that has been scaled down may run a little longer.
func (j *program) isWhole() bool {
	for rank := range j.need {
		if _, runs := j.ranks[rank]; !runs {
			return false
		}
	}
	return true
}

// pause saves the work done so far.
func (p *programs) pause(j *program) {
	if !j.since.IsZero() {
		j.left -= p.world.now().Sub(j.since)
		j.since = time.Time{}
		j.turn++
	}
}

// size returns the number of a job's ranks without scaling.
func (p *programs) size(name string) int { return p.jobs[name].size }

// scale lets a job continue with another number of ranks.
func (p *programs) scale(name string, ranks int) {
	j := p.jobs[name]
	p.pause(j)
	j.need = ranks
	p.train(name, j)
}

// Stops implements stage.Work.
func (p *programs) Stops(pod *corev1.Pod) {
	j, rank := p.of(pod)
	if j == nil || j.uids[rank] != pod.UID {
		return
	}
	delete(j.ranks, rank)
	delete(j.uids, rank)
	if !j.isWhole() {
		p.pause(j)
	}
}

// end ends all ranks of a job.
func (p *programs) end(j *program) {
	j.left = 0
	var ranks []int
	for rank := range j.ranks {
		ranks = append(ranks, rank)
	}
	slices.Sort(ranks)
	for _, rank := range ranks {
		p.exit(j, rank)
	}
}

// exit ends a rank in a moment.
func (p *programs) exit(j *program, rank int) {
	name, uid := j.ranks[rank], j.uids[rank]
	p.world.after(p.world.chance.delay(500*time.Millisecond, "exit", name.Name), func() {
		p.world.stage.Exit(name, uid, 0)
	})
}
