package app_test

import (
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/app"
)

func TestLeastStart(t *testing.T) {
	for _, c := range []struct {
		members, claims int
		qps             float32
		burst           int
		want            time.Duration
	}{
		{1000, 0, 500, 1000, 0},
		{10000, 0, 500, 1000, 18 * time.Second},
		{3500, 1, 500, 1000, 19 * time.Second},
		{2500, 2, 50, 100, 248 * time.Second},
		{10000, 0, -1, 0, 0},
	} {
		if got := app.LeastStart(c.members, c.claims, c.qps, c.burst); got != c.want {
			t.Errorf(
				"%d members with %d claims at %v/%d take %v, want %v",
				c.members,
				c.claims,
				c.qps,
				c.burst,
				got,
				c.want,
			)
		}
	}
}
