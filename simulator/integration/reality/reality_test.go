package reality_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
	"github.com/lockstep-project/lockstep/simulator/schedulers"
)

func TestTheSimulatorIsAsReal(t *testing.T) {
	seeds := []uint64{1}
	if *long {
		seeds = []uint64{1, 2, 3, 4, 5}
	}
	for _, kind := range rerun.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			for _, seed := range seeds {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					record := drive(t, rerun.Draw(kind, seed))
					kept(t, record)
					compare(t, record, schedulers.Direct)
				})
			}
		})
	}
}

// kept writes a record to the folder that was asked for.
func kept(t *testing.T, record rerun.Record) {
	t.Helper()
	if *keep == "" {
		return
	}
	content, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(*keep, fmt.Sprintf("%s-%d.json", record.Plan.Kind, record.Plan.Seed))
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, record rerun.Record, engine string) rerun.Comparison {
	t.Helper()
	scheduler, err := schedulers.Open(schedulers.Ask{
		Name: schedulers.Lockstep, Engine: engine, Nodes: len(shared.Machines.Nodes), Seed: record.Plan.Seed,
	}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := rerun.Play(t.Context(), scheduler.Engine, shared.Machines, record)
	if err != nil {
		t.Fatal(err)
	}
	c := rerun.Compare(out)
	t.Logf("%s/%d by %s: %d starts of %d gangs, same domain %d, same nodes %d, overtaken %d, waits %v, making %v, first %v, "+
		"binding %v, again %v, ending %v",
		c.Kind, c.Seed, engine, c.Starts, c.Gangs, c.SameDomain, c.SameNodes, c.Overtaken, ms(c.Waits), ms(c.Making), ms(c.First),
		ms(c.Binding), ms(c.Again), ms(c.Ending))
	for _, line := range c.Differences {
		t.Log(line)
	}
	return c
}

func ms(s rerun.Spread) string {
	return fmt.Sprintf("%d/%d/%d ms", s.P50.Milliseconds(), s.P95.Milliseconds(), s.Max/time.Millisecond)
}
