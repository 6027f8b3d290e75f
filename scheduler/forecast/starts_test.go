package forecast_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/forecast"
)

// Whatever the backlog is wrong by, and however late a wait is known, eight in ten waits lie in the interval in the
// end.
func TestStarts_IntervalsHold(t *testing.T) {
	for name, of := range map[string]float64{"too short": 0.2, "too long": 5, "right": 1} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, 10))
			s := forecast.NewStarts()
			type wait struct {
				id   string
				ends int64
			}
			var open []wait
			const n, warm = 12_000, 6000
			within, now := 0, int64(0)
			for i := range n {
				now += 60
				for at := 0; at < len(open); at++ {
					if w := open[at]; w.ends <= now {
						s.Started(w.id, w.ends)
						open = append(open[:at], open[at+1:]...)
						at--
					}
				}
				middle := 600 + r.ExpFloat64()*3600
				waited := int64(middle * (0.5 + r.ExpFloat64()))
				w := wait{strconv.Itoa(i), now + waited}
				told := s.Tell(w.id, now, forecast.Outlook{Accelerators: 8, Backlog: int64(middle * of)})
				if told.Low > told.Middle || told.Middle > told.High || told.Low < 0 {
					t.Fatalf("the forecast is %+v", told)
				}
				if i >= warm && told.Low <= waited && waited <= told.High {
					within++
				}
				open = append(open, w)
			}
			if part := float64(within) / (n - warm); part < 0.77 || part > 0.83 {
				t.Errorf("%.3f lie in the interval", part)
			}
		})
	}
}

// Jobs that began to wait when all waits were short still wait: the next forecast is longer, although none of them has
// started.
func TestStarts_LearnsFromWaitsThatAreNotOver(t *testing.T) {
	s := forecast.NewStarts()
	now := int64(0)
	outlook := forecast.Outlook{Accelerators: 1}
	for i := range 200 {
		id := strconv.Itoa(i)
		s.Tell(id, now, outlook)
		now += 100
		s.Started(id, now)
	}
	before := s.Tell("before", now, outlook)
	if before.High > 400 {
		t.Fatalf("after waits of 100 s, the forecast is %+v", before)
	}
	for i := range 100 {
		s.Tell(fmt.Sprint("long-", i), now, outlook)
	}
	after := s.Tell("after", now+36_000, outlook)
	if after.High < 36_000 || after.Middle <= before.Middle {
		t.Errorf("while a hundred wait for 36000 s, the forecast is %+v", after)
	}
}

// A wait retains its forecast until it ends.
func TestStarts_Forecast(t *testing.T) {
	s := forecast.NewStarts()
	want := s.Tell("a", 1000, forecast.Outlook{Accelerators: 8, Backlog: 3600})
	if got := s.Tell("a", 5000, forecast.Outlook{Accelerators: 8}); got != want {
		t.Errorf("the second forecast is %+v, not %+v", got, want)
	}
	if at, got, ok := s.Forecast("a"); at != 1000 || got != want || !ok {
		t.Errorf("told is %+v at %d, %t", got, at, ok)
	}
	if !s.Started("a", 6000) || s.Started("a", 6000) {
		t.Error("a wait ends once")
	}
	s.Tell("b", 7000, forecast.Outlook{})
	s.Forget("b")
	for _, id := range []string{"a", "b"} {
		if _, _, ok := s.Forecast(id); ok {
			t.Errorf("%s has a forecast", id)
		}
	}
}

// The learned state survives as JSON, and bad state harms nothing.
func TestRestoreStarts_SurvivesJSONAndBadState(t *testing.T) {
	s := forecast.NewStarts()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		id, at := strconv.Itoa(i), int64(i)*100
		s.Tell(
			id,
			at,
			forecast.Outlook{Accelerators: 1 + r.Int64N(512), Backlog: r.Int64N(90_000), Oldest: r.Int64N(90_000)},
		)
		s.Started(id, at+r.Int64N(80_000))
	}
	text, err := json.Marshal(s.State())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(`"told":`)) {
		t.Error("the number of forecasts has another name than in earlier releases")
	}
	if most := 300_000; len(text) > most {
		t.Errorf("the state has %d bytes", len(text))
	}
	var state forecast.StartsState
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	again := forecast.RestoreStarts(state)
	if !reflect.DeepEqual(again.State(), state) {
		t.Error("what is restored has another state")
	}
	o := forecast.Outlook{Accelerators: 8, Backlog: 1800, Oldest: 900}
	if got, want := again.Tell("x", 1<<20, o), s.Tell("x", 1<<20, o); got != want {
		t.Errorf("what is restored forecasts %+v, not %+v", got, want)
	}
	bad := forecast.RestoreStarts(forecast.StartsState{Longest: -5, Sizes: []forecast.WaitsState{
		{Shifts: []int64{1 << 60, -1 << 60, 3}, Ended: []forecast.EndedState{
			{
				View: 9,
			},
			{Magnitude: 77},
			{View: -1},
			{Magnitude: -2},
			{Forecasts: -4, Buckets: [][2]int64{{-1, 2}, {900, 1}, {3, 1 << 62}}},
		}}, {}, {}, {}, {}, {},
	}})
	if told := bad.Tell("x", 0, o); told.Low > told.High || told.High > 7200 {
		t.Errorf("the forecast is %+v", told)
	}
}

// By hand: four run on eight accelerators, two of them for 100 s more and two for 200 s.
func TestBacklog_Wait(t *testing.T) {
	b := forecast.Backlog{
		Running: []forecast.Work{{2, 200}, {2, 100}, {2, 100}, {2, 200}},
		Ahead:   []forecast.Work{{4, 50}, {8, 10}},
	}
	// The first starts at 100, and ends at 150. The second needs all: 200, until 210.
	for accelerators, want := range map[int64]int64{1: 210, 8: 210, 9: forecast.Never} {
		if got := b.Wait(accelerators); got != want {
			t.Errorf("%d accelerators are free after %d s, not %d", accelerators, got, want)
		}
	}
	free := forecast.Backlog{Free: 4}
	if got := free.Wait(4); got != 0 {
		t.Errorf("what is free is so after %d s", got)
	}
}
