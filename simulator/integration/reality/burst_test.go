package reality_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
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

// burst submits all gangs at once, by ten clients. When all are whole, those that run end one after another, until all have started.
func (d *driver) burst() {
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
	opened := d.record.Begin
	ended := make(map[string]time.Time)
	for {
		d.calm(opened)
		if d.waiting() == 0 {
			break
		}
		gang, found := d.next(ended)
		if !found {
			d.t.Fatalf("%d gangs wait, and nobody runs", d.waiting())
		}
		opened = d.end(gang)
		ended[gang.Gang] = opened
	}
	d.record.Returned = ended
}

// calm returns when nothing has happened for a while, since room was given back too: whoever could start has.
func (d *driver) calm(opened time.Time) {
	d.within(time.Minute, "calm", func() bool {
		return time.Since(opened) > 2*still && time.Since(d.recorder.Changed()) > still
	})
}

// next is who ends next: of those that run, the one whose run time is over first.
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

// end ends the pods of a gang, and gives its room back as one: pods end one by one, as they do anywhere, and who is asked meanwhile
// would find a part of the room. So the fleet is under maintenance until all have ended, which is one write to begin and one to end
// with. It returns the instant of the latter.
func (d *driver) end(gang rerun.Run) time.Time {
	d.t.Helper()
	d.maintain(leaf)
	pods, err := shared.Client.CoreV1().Pods(d.namespace).List(d.t.Context(), metav1.ListOptions{
		LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + gang.Gang,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	var group sync.WaitGroup
	for _, pod := range pods.Items {
		group.Go(func() { d.succeed(pod) })
	}
	group.Wait()
	d.within(20*time.Second, "the end of "+gang.Gang, func() bool { return !d.latest()[gang.Gang].Free.IsZero() })
	time.Sleep(2 * rerun.Gather) // the scheduler sees the same as we
	at := time.Now()
	d.maintain("")
	return at
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
