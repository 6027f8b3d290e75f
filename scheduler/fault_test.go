package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// A node is deleted while the gang that was planned on it is on its way. No member is bound there, and none without the
// others.
func TestGang_NodeVanishesBeforeBinding(t *testing.T) {
	t.Parallel()
	for _, point := range []string{atTrial, atPermit, atPreBind} {
		t.Run(point, func(t *testing.T) {
			w := newFakeCluster(t, schedulertest.Cliques(2, 6), 5*time.Second)
			var once sync.Once
			w.hooks = &hooks{}
			w.hooks.at = func(at string, pod *corev1.Pod, _ string) {
				if at != point || pod.Name != "moved-5" {
					return // the last one is here: the others are past this point
				}
				once.Do(func() {
					gone := schedulertest.NodeName(0, 2)
					if err := w.CoreV1().Nodes().Delete(t.Context(), gone, metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
					w.hooks.react(t, "", gone)
				})
			}
			w.start(t, -1)
			j := w.submit(t, "moved", 6, 0)
			w.until(t, 15*time.Second, "the gang is whole elsewhere", j.isWhole)
			if got := j.cliques(); !slices.Equal(got, []string{"c1"}) {
				t.Errorf("the gang is in cliques %v, want c1, which has six nodes", got)
			}
		})
	}
}

// A member is deleted, wherever it is; its Job makes another one. Before the gang has started none of its members is
// bound until it is complete again; after that the others stay where they are.
func TestGang_MemberDeletedInEveryPhase(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, w *fakeCluster) *job{
		"before the gang is complete":                     loseWhileIncomplete,
		"while it waits for room":                         loseWhileParked,
		"while it waits, just before there is room":       loseBeforeRoom,
		"between plan and Permit":                         loseAt(atTrial, 2),
		"between plan and Permit, the last one":           loseAt(atTrial, 5),
		"while it waits at Permit":                        loseAt(atPermit, 2),
		"when it comes to Permit":                         loseAt(atPermit, 5),
		"while it waits in PreBind":                       loseAt(atPreBind, 2),
		"when it comes to PreBind":                        loseAt(atPreBind, 5),
		"right after its binding, with others on the way": loseAfterBinding(1),
		"right after its binding, the last of them":       loseAfterBinding(6),
	} {
		t.Run(name, func(t *testing.T) {
			w := newFakeCluster(t, schedulertest.Cliques(1, 6), 5*time.Second)
			w.hooks = &hooks{at: func(string, *corev1.Pod, string) {}}
			j := lose(t, w)
			w.until(t, 20*time.Second, "the gang is whole with its new member", func() bool {
				return j.isWhole() && slices.ContainsFunc(j.members, func(m *member) bool { return m.made == 2 })
			})
			if _, evicted := w.now(j); len(evicted) > 0 {
				t.Errorf("the scheduler deleted %v", evicted)
			}
		})
	}
}

func loseWhileIncomplete(t *testing.T, w *fakeCluster) *job {
	t.Helper()
	w.start(t, -1)
	j := w.submit(t, "g", 6, 1)
	w.lose(t, j, 2)
	w.complete(t, j)
	return j
}

func loseWhileParked(t *testing.T, w *fakeCluster) *job {
	t.Helper()
	j, other := parked(t, w)
	w.lose(t, j, 2)
	w.until(t, 5*time.Second, "the member is made again", func() bool { return j.members[2].made == 2 })
	w.passes(t, settled)
	w.finish(t, other)
	return j
}

func loseBeforeRoom(t *testing.T, w *fakeCluster) *job {
	t.Helper()
	j, other := parked(t, w)
	w.lose(t, j, 2)
	w.finish(t, other)
	return j
}

// parked makes a gang that waits until another one, which has taken all nodes, ends.
func parked(t *testing.T, w *fakeCluster) (waits, runs *job) {
	t.Helper()
	w.start(t, -1)
	runs = w.submit(t, "runs", 6, 0)
	w.until(t, 10*time.Second, "the first gang runs", runs.isWhole)
	waits = w.submit(t, "g", 6, 0)
	w.WaitRejected(t, "g")
	w.passes(t, settled)
	return waits, runs
}

// loseAt deletes a rank when the last one arrives at a point, so that the others are there or past it.
func loseAt(point string, rank int) func(*testing.T, *fakeCluster) *job {
	return func(t *testing.T, w *fakeCluster) *job {
		t.Helper()
		var once sync.Once
		var j *job
		w.hooks.at = func(at string, pod *corev1.Pod, _ string) {
			if at == point && pod.Name == "g-5" {
				once.Do(func() { w.hooks.react(t, w.lose(t, j, rank), "") })
			}
		}
		w.start(t, -1)
		j = w.submit(t, "g", 6, 1)
		w.complete(t, j)
		return j
	}
}

// loseAfterBinding deletes the pod that is bound as the n-th, before any other action.
func loseAfterBinding(n int) func(*testing.T, *fakeCluster) *job {
	return func(t *testing.T, w *fakeCluster) *job {
		t.Helper()
		w.start(t, -1)
		j := w.submit(t, "g", 6, 1)
		w.locked(func() { j.pardoned = true })
		w.binds = func(_ *job, pod *corev1.Pod) {
			if n--; n == 0 {
				w.hit = time.Now()
				w.vanish(t, pod)
			}
		}
		w.complete(t, j)
		return j
	}
}

// The scheduler dies in the middle of bindings, again and again, and another one continues with the state of the API
// server.
func TestRestart_SchedulerDiesWhileBinding(t *testing.T) {
	t.Parallel()
	kills, seeds := 3, 1
	if *long {
		kills, seeds = 25, 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 3))
			w := newFakeCluster(t, schedulertest.Cliques(8, 12), 3*time.Second)
			d := newDay(w, random, 30)
			for left := kills; ; left-- {
				if left == 0 {
					w.start(t, -1)
					break
				}
				w.start(t, random.IntN(d.members/(kills+1)))
				w.until(t, time.Minute, "the scheduler dies", func() bool { return w.current.dead })
			}
			w.until(t, 2*time.Minute, "all gangs have run", d.over)
		})
	}
}

// day is a run of gangs that arrive, run and end, on a fleet that holds about half of them.
type day struct {
	*fakeCluster
	begin   time.Time
	coming  []arrival
	running map[*job]time.Duration
	members int
}

type arrival struct {
	at, runs time.Duration
	size     int
}

func newDay(w *fakeCluster, random *rand.Rand, gangs int) *day {
	d := &day{fakeCluster: w, begin: time.Now(), running: make(map[*job]time.Duration)}
	for i := range gangs {
		a := arrival{
			at: time.Duration(i) * 50 * time.Millisecond, size: 2 + random.IntN(11),
			runs: time.Duration(300+random.IntN(1500)) * time.Millisecond,
		}
		d.coming = append(d.coming, a)
		d.members += a.size
	}
	w.goesOn = d.goOn
	return d
}

// goOn submits the gangs that are due and ends those that have run.
func (d *day) goOn(t *testing.T) {
	t.Helper()
	for len(d.coming) > 0 && time.Since(d.begin) > d.coming[0].at {
		j := d.submit(t, fmt.Sprint("gang-", len(d.coming)), d.coming[0].size, 0)
		d.running[j] = d.coming[0].runs
		d.coming = d.coming[1:]
	}
	for j, runs := range d.running {
		var cliques []string
		d.locked(func() {
			if j.isWhole() && time.Since(j.whole) > runs {
				cliques = j.cliques()
			}
		})
		if len(cliques) == 0 {
			continue
		}
		if len(cliques) > 1 {
			t.Errorf("gang %s is in cliques %v, want one", j.group.Name, cliques)
		}
		d.finish(t, j)
		delete(d.running, j)
	}
}

func (d *day) over() bool { return len(d.coming)+len(d.running) == 0 }

// A gang that is partly bound when its scheduler dies gets the rest of its nodes from the next scheduler, also if
// others wait that could take them.
func TestRestart_TornGangIsCompletedFirst(t *testing.T) {
	t.Parallel()
	times := 3
	if *long {
		times = 20
	}
	for i := range times {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			w := newFakeCluster(t, schedulertest.Cliques(1, 6), 3*time.Second)
			w.start(t, 3)
			torn := w.submit(t, "torn", 6, 0)
			w.until(t, 10*time.Second, "the scheduler dies", func() bool { return w.current.dead })
			for i := range 3 { // one of them fits beside the bound members
				w.submit(t, fmt.Sprint("waits-", i), 3-i, 0)
			}
			w.start(t, -1)
			w.until(t, 10*time.Second, "the gang is whole", torn.isWhole)
		})
	}
}

// Ten bindings of a member time out. It retains its node meanwhile, whatever other pods need it.
func TestBind_TimeoutIsRetriedOnTheSameNode(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t, schedulertest.Cliques(1, 6), time.Minute)
	w.hooks = &hooks{at: func(string, *corev1.Pod, string) {}}
	w.hit = time.Now() // one second is not enough for ten tries
	failed, asked := 0, map[string]bool{}
	w.refuses = func(pod *corev1.Pod, node string) error {
		if pod.Name != "g-3" {
			return nil
		}
		asked[node] = true
		if failed++; failed > 10 {
			return nil
		}
		return serverTimeout()
	}
	w.start(t, -1)
	j := w.submit(t, "g", 6, 0)
	w.until(t, 10*time.Second, "a binding fails", func() bool { return failed > 0 })
	rival, members := schedulertest.Gang("rival", 1, "")
	rival.Annotations[topology.AnnotationQueuedAt] = "2026-11-21T00:00:00Z" // it is before all others in the queue
	w.Create(t, rival, members)
	w.until(t, 45*time.Second, "the gang is whole", func() bool { return failed > 10 && j.isWhole() })
	if at := w.NodeOf(members[0].Name); at != "" || len(asked) != 1 {
		t.Errorf("the member was tried on %d nodes, the rival is on %q", len(asked), at)
	}
	back := w.hooks.sentBack()
	if _, evicted := w.now(j); back > 0 || len(evicted) > 0 {
		t.Errorf("the member lost its reservation %d times; the scheduler deleted %v", back, evicted)
	}
}

// A binding fails for ever. After the grace the members that are bound are marked and evicted; the gang starts whole
// when the failure is over.
func TestBind_PermanentFailureEvictsGang(t *testing.T) {
	w := newFakeCluster(t, schedulertest.Cliques(1, 6), 2*time.Second)
	broken, since := true, time.Time{}
	w.refuses = func(pod *corev1.Pod, _ string) error {
		if since.IsZero() { // the grace counts from the first binding of the gang
			since = time.Now()
		}
		if pod.Labels[schedulertest.RankLabel] != "3" || !broken {
			return nil
		}
		if w.hit.IsZero() {
			w.hit = time.Now()
		}
		return serverTimeout()
	}
	w.start(t, -1)
	j := w.submit(t, "g", 6, 0)
	w.until(t, 10*time.Second, "five members are bound", func() bool { return j.bound() == 5 })
	w.until(t, 10*time.Second, "the five members are evicted", func() bool { return len(w.evicted) == 5 })
	w.locked(func() {
		if early := since.Add(w.grace); time.Now().Before(early) {
			t.Errorf("the members were evicted %v before the grace was over", time.Until(early))
		}
		if j.bound() > 0 {
			t.Errorf("%d members are bound still: %v were evicted", j.bound(), w.evicted)
		}
		broken = false
	})
	w.until(t, 20*time.Second, "the gang is whole", j.isWhole)
}

// A gang that was whole is not evicted because one of its members has no place at the moment, or cannot be bound there:
// that decision is left to its job.
func TestGang_RunningGangIsNotEvicted(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, w *fakeCluster, node string) (undo func()){
		"the new member cannot be placed": func(t *testing.T, w *fakeCluster, node string) func() {
			t.Helper()
			w.cordon(t, node, "true")
			return func() { w.cordon(t, node, "false") }
		},
		"the new member cannot be bound": func(t *testing.T, w *fakeCluster, _ string) func() {
			t.Helper()
			w.locked(func() { w.refuses = func(*corev1.Pod, string) error { return serverTimeout() } })
			return func() { w.locked(func() { w.refuses = nil }) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFakeCluster(t, schedulertest.Cliques(1, 6), time.Second)
			w.start(t, -1)
			j := w.submit(t, "g", 6, 0)
			w.until(t, 10*time.Second, "the gang is whole", j.isWhole)
			undo := harm(t, w, j.members[2].node)
			w.locked(func() { w.hit = time.Now().Add(time.Minute) }) // it stays torn, and that is right
			w.lose(t, j, 2)
			w.passes(t, 4*w.grace)
			if bound, evicted := w.now(j); len(evicted) > 0 || bound != 5 {
				t.Fatalf("%d of the other five are bound, the scheduler deleted %v", bound, evicted)
			}
			undo()
			w.until(t, 15*time.Second, "the gang is whole again", j.isWhole)
		})
	}
}

// A gang that had the room is deleted before it is bound. The gang that waits for that room gets it at once.
func TestGang_DeletedGangFreesItsRoom(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t, schedulertest.Cliques(1, 6), time.Minute)
	var once sync.Once
	here, deleted := make(chan struct{}), make(chan struct{})
	w.hooks = &hooks{at: func(point string, pod *corev1.Pod, _ string) {
		if point == atPreBind && pod.Name == "first-5" {
			once.Do(func() { close(here) })
			<-deleted
		}
	}}
	w.start(t, -1)
	first := w.submit(t, "first", 6, 0)
	<-here
	second := w.submit(t, "second", 6, 0)
	w.WaitRejected(t, "second")
	w.passes(t, settled)
	w.finish(t, first)
	close(deleted)
	w.until(t, 15*time.Second, "the gang that waited is whole", second.isWhole)
}
