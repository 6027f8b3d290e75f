package runtimes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
	"github.com/lockstep-project/lockstep/scheduler/statemap"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// cluster is an API server, and a clock for the stores of schedulers that follow one another.
type cluster struct {
	*fake.Clientset

	clock *clocktesting.FakeClock
}

func newCluster() cluster {
	return cluster{fake.NewClientset(), clocktesting.NewFakeClock(time.Unix(1_000_000, 0))}
}

func (c cluster) store(l *runtimes.Learner) *statemap.Keeper {
	t := timing.Timing{Clock: c.clock, Beside: func(do func()) { go do() }}
	return runtimes.NewKeeper(statemap.Map{Client: c, Namespace: "lockstep-system", Name: "run-times"}, l, t)
}

// writes counts the writes of the ConfigMap.
func (c cluster) writes() int {
	n := 0
	for _, action := range c.Actions() {
		if action.GetVerb() == "create" || action.GetVerb() == "update" {
			n++
		}
	}
	return n
}

// The next scheduler makes the same predictions as the last one, as of the last batch.
func TestStore_SurvivesAFailover(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	of, l := newCluster(), newLearner()
	store := of.store(l.Learner)
	store.Load(ctx)
	store.Run(ctx)
	for i := range 20 {
		l.runs(contention.ID(fmt.Sprint("first-", i)), 600)
		of.clock.Step(10 * time.Second)
	}
	if n := of.writes(); n != 0 {
		t.Errorf("it writes %d times in 200 s", n)
	}
	of.clock.Step(5 * time.Minute)
	for n := time.Now(); of.writes() == 0 && time.Since(n) < 10*time.Second; time.Sleep(time.Millisecond) {
	}
	if n := of.writes(); n != 1 {
		t.Fatalf("it writes %d times in a batch", n)
	}
	l.runs("lost", 600)

	next := newLearner()
	of.store(next.Learner).Load(ctx)
	if got := next.predicts(); got < 550 || got > 720 {
		t.Errorf("the next scheduler predicts %d s", got)
	}
}

// A scheduler that has loaded nothing yet, as one that stands by, writes nothing; neither does one that has nothing
// new.
func TestStore_WritesOnlyNews(t *testing.T) {
	of, l := newCluster(), newLearner()
	store := of.store(l.Learner)
	l.runs("x", 600)
	store.Save(t.Context())
	if of.writes() != 0 {
		t.Error("a scheduler that stands by writes")
	}
	store.Load(t.Context())
	l.runs("y", 600)
	store.Save(t.Context())
	store.Save(t.Context())
	if n := of.writes(); n != 1 {
		t.Errorf("it writes %d times", n)
	}
}

// State that cannot be read is ignored, and replaced by the next batch.
func TestStore_IgnoresWhatItCannotRead(t *testing.T) {
	for name, content := range map[string]map[string][]byte{
		"no entry": {"other": nil}, "no gzip": {"state.json.gz": []byte("hello")}, "half of it": {"state.json.gz": half(t)},
	} {
		t.Run(name, func(t *testing.T) {
			of, l := newCluster(), newLearner()
			object := &corev1.ConfigMap{BinaryData: content}
			object.Namespace, object.Name = "lockstep-system", "run-times"
			if _, err := of.CoreV1().
				ConfigMaps(object.Namespace).
				Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			store := of.store(l.Learner)
			store.Load(t.Context())
			for i := range 10 {
				l.runs(contention.ID(strconv.Itoa(i)), 600)
			}
			if l.predicts() == 0 {
				t.Error("it does not learn")
			}
			store.Save(t.Context())
			next := newLearner()
			of.store(next.Learner).Load(t.Context())
			if next.predicts() == 0 {
				t.Error("the next scheduler predicts nothing")
			}
		})
	}
}

// half returns the first half of a packed history.
func half(t *testing.T) []byte {
	t.Helper()
	content, err := statemap.Encode(forecast.State{Ended: 100, Classes: make([]forecast.Class, 100)})
	if err != nil {
		t.Fatal(err)
	}
	return content[:len(content)/2]
}

// The largest history, of names as long and as different as Kubernetes allows and with runs of every length, is written
// as far as a ConfigMap holds it.
func TestStore_IsBounded(t *testing.T) {
	of, l := newCluster(), newLearner()
	store := of.store(l.Learner)
	store.Load(t.Context())
	r := rand.New(rand.NewPCG(7, 8))
	name := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		return b.String()
	}
	keys := make([]forecast.Key, 700)
	for i := range keys {
		keys[i] = forecast.Key{
			Namespace: name(63),
			Owner:     name(253),
			Runtime:   name(63),
			Stem:      name(253),
			Size:      r.Int64(),
		}
	}
	for i := range 14_000 {
		key, id := keys[i%len(keys)], contention.ID(strconv.Itoa(i))
		l.Waits(id, func() forecast.Key { return key })
		l.Starts(id)
		l.now += 1 << r.IntN(30)
		l.Ends(id, runtimes.Succeeded)
		l.Leaves(id)
	}
	store.Save(t.Context())
	object, err := of.CoreV1().ConfigMaps("lockstep-system").Get(t.Context(), "run-times", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bytes := 0
	for _, content := range object.BinaryData {
		bytes += len(content)
	}
	if bytes > 512<<10 || bytes < 128<<10 {
		t.Errorf("the history has %d bytes", bytes)
	}
}
