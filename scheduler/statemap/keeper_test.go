package statemap_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/statemap"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// counter is a state that may age.
type counter struct {
	value, changes int
	ages           bool
}

func (c *counter) Changes() int            { return c.changes }
func (c *counter) Ages() bool              { return c.ages }
func (c *counter) Encode() ([]byte, error) { return statemap.Encode(c.value) }
func (c *counter) Decode(b []byte) error   { return json.Unmarshal(b, &c.value) }

// scene is a keeper with its state, its clock and the API server.
type scene struct {
	*counter
	*statemap.Keeper

	clock  *clocktesting.FakeClock
	client *fake.Clientset
}

func newScene(client *fake.Clientset) scene {
	s := scene{counter: &counter{}, clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0)), client: client}
	s.Keeper = &statemap.Keeper{
		At: statemap.Map{
			Client:    client,
			Namespace: "ns",
			Name:      "state",
		},
		Of:     s.counter,
		What:   "numbers",
		Age:    time.Minute,
		Timing: timing.With(s.clock),
	}
	return s
}

// writes counts the writes that were tried.
func (s scene) writes() (n int) {
	for _, a := range s.client.Actions() {
		if a.GetVerb() == "create" || a.GetVerb() == "update" {
			n++
		}
	}
	return n
}

// A scheduler that stands by writes nothing, one that leads writes the changes, and the next one reads them, once.
func TestKeeper_WritesChangesForTheNext(t *testing.T) {
	ctx, s := t.Context(), newScene(fake.NewClientset())
	s.value, s.changes = 7, 1
	s.Save(ctx)
	if n := s.writes(); n != 0 {
		t.Fatalf("%d writes before it leads", n)
	}
	s.Load(ctx)
	s.Save(ctx)
	s.Save(ctx)
	if n := s.writes(); n != 1 {
		t.Errorf("%d writes of one change", n)
	}
	next := newScene(s.client)
	next.Load(ctx)
	if next.value != 7 {
		t.Errorf("the next one reads %d", next.value)
	}
	next.value = 8
	if next.Load(ctx); next.value != 8 {
		t.Error("it reads twice")
	}
}

// A state that ages is written once a minute though nothing changes.
func TestKeeper_WritesWhatAges(t *testing.T) {
	ctx, s := t.Context(), newScene(fake.NewClientset())
	s.ages, s.changes = true, 1
	s.Load(ctx)
	s.Save(ctx)
	s.clock.Step(59 * time.Second)
	if s.Save(ctx); s.writes() != 1 {
		t.Errorf("%d writes after 59 s", s.writes())
	}
	s.clock.Step(time.Second)
	if s.Save(ctx); s.writes() != 2 {
		t.Errorf("%d writes after a minute", s.writes())
	}
}

// State that could not be written is written the next time; state that cannot be read is left out.
func TestKeeper_GetsOverFaults(t *testing.T) {
	ctx, s := t.Context(), newScene(fake.NewClientset())
	down := true
	s.client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down, nil, errors.New("down")
	})
	s.value, s.changes = 7, 1
	s.Load(ctx)
	s.Save(ctx)
	down = false
	s.Save(ctx)
	next := newScene(s.client)
	if next.Load(ctx); next.value != 7 {
		t.Errorf("the next one reads %d", next.value)
	}
}
