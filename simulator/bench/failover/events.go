package failover

import (
	"context"
	"fmt"
	"time"
)

const (
	// silence is the time for which the API server answers no request of the schedulers.
	silence = 5 * time.Second
)

// event is one fault of the leader.
type event struct {
	name string
	// within bounds the gap, 0 for not at all.
	within  time.Duration
	happens func(context.Context, *pair) error
}

// events returns all measured events, in order. The first is the reference for the others.
func events() []event {
	return []event{
		{"works", 0, func(context.Context, *pair) error { return nil }},
		{"is asked to stop", 2 * time.Second, func(ctx context.Context, p *pair) error {
			p.leader().Stop(ctx)
			return p.succeed(ctx)
		}},
		{"is killed", 8 * time.Second, func(ctx context.Context, p *pair) error {
			if err := p.leader().Kill(); err != nil {
				return err
			}
			return p.succeed(ctx)
		}},
		{"gets no answer for 5 s", silence + 2*time.Second, func(ctx context.Context, p *pair) error {
			before, err := p.holder(ctx)
			if err != nil {
				return err
			}
			excess, err := p.silence(ctx, before)
			if err != nil {
				return err
			}
			p.clock.Sleep(2 * time.Second)
			after, err := p.holder(ctx)
			if err == nil && (after != before || !p.leader().Runs()) {
				err = &changeError{excess}
			}
			return err
		}},
	}
}

// changeError indicates that a silence changed the leader, which it must not.
type changeError struct {
	// excess is that of the silence.
	excess time.Duration
}

// Error implements error.
func (e *changeError) Error() string {
	return fmt.Sprintf("the leader has changed, or has ended; the API server was silent %d ms longer than meant",
		e.excess.Milliseconds())
}
