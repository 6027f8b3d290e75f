package forecast_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/forecast"
)

func ExampleHistory() {
	history := forecast.New()
	nightly := forecast.Key{Namespace: "vision", Owner: "ada", Runtime: "torch-distributed", Stem: "nightly", Size: 64}
	for range 20 {
		history.Ended(nightly, 5400)
	}
	bound, ok := history.Of(nightly).Quantile(900, 0)
	fmt.Println(bound, ok)
	after, _ := history.Of(nightly).Quantile(500, 5500)
	fmt.Println(after)
	// Output:
	// 5700 true
	// 5646
}

func TestStem(t *testing.T) {
	for name, want := range map[string]string{
		"bert-large-20261127": "bert-large", "sweep-lr-3": "sweep-lr", "train-x7k2q": "train", "train": "train",
		"resnet50-b8": "resnet-b", "7": "", "gpt-neo": "gpt-neo", "eval-step-12000-abc12": "eval-step",
	} {
		if got := forecast.Stem(name); got != want {
			t.Errorf("Stem(%q) = %q, want %q", name, got, want)
		}
	}
}

// Of runs that are drawn from a known distribution, as many exceed each quantile as its name says, within a tenth:
// about 92 runs have a weight, so that two standard errors of the median are a tenth.
func TestDistribution_QuantilesHold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() int64 { return 60 + int64(r.ExpFloat64()*7200) }
	history := forecast.New()
	key := forecast.Key{Namespace: "a", Size: 8}
	for range 2000 {
		history.Ended(key, draw())
	}
	for _, of := range []int64{100, 500, 900} {
		for _, ran := range []int64{0, 3600} {
			bound, ok := history.Of(key).Quantile(of, ran)
			if !ok {
				t.Fatal("nothing is predicted")
			}
			within, all := 0, 0
			for range 20_000 {
				if seconds := draw(); seconds > ran {
					all++
					if seconds <= bound {
						within++
					}
				}
			}
			if part := float64(within) / float64(all) * 1000; part < float64(of)-100 || part > float64(of)+100 {
				t.Errorf(
					"quantile %d of what ran %d s is %d s, which %.0f in a thousand do not exceed",
					of,
					ran,
					bound,
					part,
				)
			}
		}
	}
}

// A key without runs of its own is predicted by the runs that have most in common with it.
func TestHistory_BroaderClassesTell(t *testing.T) {
	history := forecast.New()
	short := forecast.Key{Namespace: "eval", Owner: "ci", Stem: "eval", Size: 1}
	long := forecast.Key{Namespace: "train", Owner: "ada", Stem: "gpt", Size: 512}
	for range 40 {
		history.Ended(short, 60)
		history.Ended(long, 86_400)
	}
	median := func(k forecast.Key) int64 {
		t.Helper()
		seconds, ok := history.Of(k).Quantile(500, 0)
		if !ok {
			t.Fatalf("nothing is predicted of %+v", k)
		}
		return seconds
	}
	if got := median(forecast.Key{Namespace: "eval", Owner: "eve", Stem: "new", Size: 1}); got > 120 {
		t.Errorf("another evaluation takes %d s", got)
	}
	if got := median(forecast.Key{Namespace: "train", Owner: "bob", Stem: "new", Size: 512}); got < 43_200 {
		t.Errorf("another training takes %d s", got)
	}
}

// A change of run times is learned within some dozens of runs.
func TestHistory_ForgetsWhatChanged(t *testing.T) {
	history := forecast.New()
	key := forecast.Key{Namespace: "a", Size: 8}
	for range 500 {
		history.Ended(key, 600)
	}
	for range 80 {
		history.Ended(key, 6000)
	}
	if seconds, _ := history.Of(key).Quantile(500, 0); seconds < 5000 {
		t.Errorf("after 80 runs of 6000 s the median is %d s", seconds)
	}
}

func TestHistory_TooFewRunsTellNothing(t *testing.T) {
	history := forecast.New()
	key := forecast.Key{Namespace: "a"}
	for range 7 {
		history.Ended(key, 600)
	}
	if seconds, ok := history.Of(key).Quantile(500, 0); ok {
		t.Errorf("after seven runs %d s are predicted", seconds)
	}
	history.Ended(key, 600)
	if _, ok := history.Of(key).Quantile(500, 0); !ok {
		t.Error("after eight runs nothing is predicted")
	}
	if _, ok := history.Of(key).Quantile(500, 100_000); ok {
		t.Error("something is predicted of a run that takes longer than all before")
	}
}

// A history survives as JSON, is the same whatever is made of it, and stays small.
func TestHistory_StateIsBounded(t *testing.T) {
	history := forecast.New()
	r := rand.New(rand.NewPCG(3, 4))
	keys := make([]forecast.Key, 6000)
	for i := range keys {
		keys[i] = forecast.Key{
			Namespace: fmt.Sprintf("team-%d", i%50),
			Owner:     fmt.Sprintf("user-%d", i%400),
			Stem:      fmt.Sprintf("job-%d", i),
			Size:      8,
		}
		history.Ended(keys[i], 1+r.Int64N(1_000_000))
	}
	text, err := json.Marshal(history.State(forecast.MostKept))
	if err != nil {
		t.Fatal(err)
	}
	if most := 900_000; len(text) > most {
		t.Errorf("the state has %d bytes, more than a ConfigMap holds", len(text))
	}
	var state forecast.State
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	again := forecast.Restore(state)
	if got := again.State(forecast.MostKept); !reflect.DeepEqual(got, state) {
		t.Error("a restored history has another state")
	}
	last := keys[len(keys)-1]
	if !slices.Equal(again.Of(last)[:], history.Of(last)[:]) {
		t.Error("a restored history predicts something else of the last run")
	}
}

// A user's edits of the ConfigMap harm nothing.
func TestRestore_BadState(t *testing.T) {
	history := forecast.Restore(forecast.State{Ended: 100, Classes: []forecast.Class{
		{Name: "namespace//-1", Buckets: [][2]int64{{-1, 5}, {4000, 5}, {3, -7}, {8, 1 << 62}}},
		{Name: "namespace//-1", Buckets: [][2]int64{{40, 1}}},
		{Name: "namespace/x/y"},
		{Name: ""},
		{Name: "stem"},
	}})
	if seconds, ok := history.Of(forecast.Key{}).Quantile(900, 0); !ok || seconds < 4 || seconds > 5 {
		t.Errorf("predicted are %d s, %t", seconds, ok)
	}
}

// A tenant that floods the history with short runs, in sizes and under names of its choice, moves the predictions about
// ten others little, and those about a namespace without runs no more than one of eleven may. None of the others'
// classes is driven out.
func TestHistory_OneTenantMovesLittle(t *testing.T) {
	history := forecast.New()
	r := rand.New(rand.NewPCG(5, 6))
	others := make([]forecast.Key, 10)
	for i := range others {
		others[i] = forecast.Key{Namespace: fmt.Sprint("team-", i), Owner: "ada", Stem: "train", Size: 8}
		for range 20 {
			history.Ended(others[i], 3000+r.Int64N(1200))
		}
	}
	newcomer := forecast.Key{Namespace: "new", Stem: "train", Size: 8}
	before, fresh := history.RunTime(others[0], 0), history.RunTime(newcomer, 0)
	for i := range 30_000 {
		history.Ended(forecast.Key{
			Namespace: "mallory",
			Owner:     fmt.Sprint("o", i%7),
			Stem:      fmt.Sprintf("s%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26),
			Size:      int64(1 + i%64),
		}, 1)
	}
	for range 100 {
		history.Ended(forecast.Key{Namespace: "mallory", Stem: "s", Size: 8}, 1)
	}
	restored := forecast.Restore(history.State(forecast.MostKept))
	for name, h := range map[string]*forecast.History{"it": history, "what is restored of it": restored} {
		for _, k := range others {
			if after := h.RunTime(k, 0); after < before*95/100 || after > before*105/100 {
				t.Errorf("%s predicts %d s of %s instead of %d s", name, after, k.Namespace, before)
			}
		}
		if after := h.RunTime(newcomer, 0); after < fresh*9/10 || after > fresh*11/10 {
			t.Errorf("%s predicts %d s of a newcomer instead of %d s", name, after, fresh)
		}
		if median, _ := h.Of(newcomer).Quantile(500, 0); median < 2500 {
			t.Errorf("%s has a newcomer take %d s in the median", name, median)
		}
	}
}
