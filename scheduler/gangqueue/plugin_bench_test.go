package gangqueue_test

import (
	"testing"
	"time"

	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/gangqueue"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

func BenchmarkAssemble(b *testing.B) {
	const size = 10_000
	for b.Loop() {
		s := newScheduler()
		plugin, err := gangqueue.NewWithClock(
			s,
			clocktesting.NewFakeClock(time.Unix(0, 0)),
			waiting.New(timing.With(clocktesting.NewFakeClock(time.Unix(0, 0))), contention.DefaultPolicy()),
		)
		if err != nil {
			b.Fatal(err)
		}
		events, err := plugin.EventsToRegister(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		s.addGroup(group("g", size))
		for i := range size {
			p := member("g", i)
			s.addMember(p)
			if _, err := events[0].PreQueueingHintFn(klog.Background(), nil, p); err != nil {
				b.Fatal(err)
			}
		}
	}
}
