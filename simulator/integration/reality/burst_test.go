package reality_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
	"github.com/lockstep-project/lockstep/topology"
)

// leaf is the level that holds the whole fleet.
const leaf = "fabric.topograph.run/tier-0"

// burst submits all gangs at once, by ten clients, and opens the fleet when all are whole: of two that arrive within
// milliseconds, either may find the scheduler idle. Then running gangs end one after another, until all have started.
func (d *driver) burst() {
	d.maintain(leaf)
	numbers := make(chan int)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			for i := range numbers {
				d.submit(i)
			}
		})
	}
	for i := range d.plan.Gangs {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	d.settled()
	d.record.Opened = time.Now()
	d.maintain("")
	d.calm(d.record.Opened, afterOpening)
	ended := make(map[string]time.Time)
	for d.waiting() > 0 {
		gang, found := d.next(ended)
		if !found {
			d.t.Fatalf("%d gangs wait, and nobody runs", d.waiting())
		}
		at := d.end(gang)
		ended[gang.Gang] = at
		d.calm(at, afterEnd)
	}
	d.record.Returned = ended
}

// How long nothing has to have happened before a gang is ended, and how long ago the last one was: lockstep-scheduler
// asks those that wait once more a second after a change, and if that fell into an end they would see a part of the
// room. Opening the fleet lets many start, one after another, and on a busy machine there are pauses between them.
const (
	calmFor      = 2 * still
	afterEnd     = 1200 * time.Millisecond
	afterOpening = 3 * time.Second
)

// calm returns when there was no change for a while, and last is longer ago than ago: every gang that could start has.
func (d *driver) calm(last time.Time, ago time.Duration) {
	d.within(time.Minute, "calm", func() bool {
		return time.Since(last) > ago && time.Since(d.recorder.Changed()) > calmFor
	})
}

// next returns the run that ends next: of those that run, the one whose run time is over first.
func (d *driver) next(ended map[string]time.Time) (rerun.Run, bool) {
	var running []rerun.Run
	for _, run := range d.latest() {
		if _, over := ended[run.Gang]; !over && !run.Bound.IsZero() {
			running = append(running, run)
		}
	}
	if len(running) == 0 {
		return rerun.Run{}, false
	}
	return slices.MinFunc(running, func(a, b rerun.Run) int {
		return cmp.Or(d.due(a).Compare(d.due(b)), cmp.Compare(a.Gang, b.Gang))
	}), true
}

// end ends the pods of a gang, and lets the scheduler see all of it at once: pods end one by one, as they do anywhere,
// and a gang that is evaluated meanwhile would find a part of the room. So the scheduler stands still until all have
// ended; events of that time wait for it, and it gathers changes for longer than it takes to read them. It returns the
// instant at which the scheduler continues.
func (d *driver) end(gang rerun.Run) time.Time {
	d.t.Helper()
	pods, err := shared.Client.CoreV1().Pods(d.namespace).List(d.t.Context(), metav1.ListOptions{
		LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + gang.Gang,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.signal(syscall.SIGSTOP)
	defer d.signal(syscall.SIGCONT)
	var group sync.WaitGroup
	for _, pod := range pods.Items {
		group.Go(func() { d.succeed(pod) })
	}
	group.Wait()
	d.within(20*time.Second, "the end of "+gang.Gang, func() bool { return !d.latest()[gang.Gang].Free.IsZero() })
	time.Sleep(2 * rerun.Gather) // the scheduler receives the same events as this test
	return time.Now()
}

// signal stops the scheduler, or lets it continue.
func (d *driver) signal(what syscall.Signal) {
	d.t.Helper()
	for _, component := range shared.Components() {
		if component.Name != "lockstep-scheduler" {
			continue
		}
		if err := syscall.Kill(component.PID, what); err != nil {
			d.t.Errorf("%s for the scheduler: %v", what, err)
		}
		return
	}
	d.t.Error("there is no scheduler to stop")
}

func (d *driver) succeed(pod corev1.Pod) {
	_, err := shared.Client.CoreV1().Pods(pod.Namespace).Patch(d.t.Context(), pod.Name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		d.t.Error(err)
	}
}

// maintain closes the domain of the first tray at a level; at none it opens it.
func (d *driver) maintain(level string) {
	d.t.Helper()
	var value any
	if level != "" {
		value = level
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{topology.KeyMaintenance: value},
	}})
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = shared.Client.CoreV1().Nodes().
		Patch(d.t.Context(), "rack-1-tray-01", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
}
