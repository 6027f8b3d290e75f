// Package reservations shows the leases of a running scheduler to users: at /configz of its secure port, where reading
// needs authentication and the right to get that URL, and as metrics.
package reservations

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// Path is the endpoint, and Entry the part of its answer that lists the reservations.
const (
	Path  = configz.DefaultConfigzPath
	Entry = "lockstep.dev/reservations"
)

// List is all reservations of a scheduler.
type List struct {
	metav1.TypeMeta `json:",inline"`
	// Items are in the order of the queue.
	Items []Reservation `json:"items"`
}

// Reservation is a place that is reserved for a gang, or for a pod in no gang.
type Reservation struct {
	// Owner is namespace/name of the PodGroup or the pod.
	Owner string `json:"owner"`
	// Reason is head, preemption, start, replacement, late-member or move.
	Reason string `json:"reason"`
	// Open reservations bind no other gang: too many accelerators would idle until the instant.
	Open bool `json:"open"`
	// Domain is the smallest domain that holds the place.
	Domain string   `json:"domain"`
	Nodes  []string `json:"nodes"`
	// Expected is the time at which the place should be free; nil if that is not known.
	Expected *metav1.Time `json:"expected,omitempty"`
	// Estimated says that the instant rests on guesses about run times.
	Estimated bool `json:"estimated,omitempty"`
	// Since is the time at which the reservation was granted, or last closed.
	Since metav1.Time `json:"since"`
	// Expires is the time at which it ends whatever happens; nil for reservations that last as long as their owner
	// waits.
	Expires *metav1.Time `json:"expires,omitempty"`
	// IdleHours is the number of accelerator-hours that the place has idled while another workload could have used it,
	// BudgetHours the most that it may.
	IdleHours   float64 `json:"idleAcceleratorHours"`
	BudgetHours float64 `json:"budgetAcceleratorHours"`
}

const secondsPerHour = 3600

// of returns the leases of a queue.
func of(queue *waiting.Queue) List {
	out := List{
		TypeMeta: metav1.TypeMeta{APIVersion: config.APIVersion, Kind: "ReservationList"}, Items: []Reservation{},
	}
	for _, l := range queue.Leases() {
		r := Reservation{
			Owner:       l.Owner.String(),
			Reason:      string(l.Lease.Reason),
			Open:        l.Lease.Open,
			Domain:      l.Lease.Within.String(),
			Nodes:       slices.Sorted(maps.Keys(l.Room)),
			Estimated:   !l.Lease.Firm && l.Lease.Reason == contention.Head,
			Since:       metav1.Unix(l.Lease.Since, 0),
			Expires:     instant(l.Lease.Expiry),
			IdleHours:   float64(l.Lease.Budget.Idled) / secondsPerHour,
			BudgetHours: float64(l.Lease.Budget.Granted) / secondsPerHour,
		}
		if l.Lease.Reason == contention.Head || l.Lease.Reason == contention.Preemption {
			r.Expected = instant(l.Lease.Instant)
		}
		out.Items = append(out.Items, r)
	}
	return out
}

func instant(at int64) *metav1.Time {
	if at == contention.None {
		return nil
	}
	t := metav1.NewTime(time.Unix(at, 0).UTC())
	return &t
}

// Serve lists the leases of a queue at Path, and as metrics. A process has one.
func Serve(queue *waiting.Queue, c clock.PassiveClock) error {
	configz.Delete(Entry)
	entry, err := configz.New(Entry)
	if err != nil {
		return fmt.Errorf("serving reservations: %w", err)
	}
	if err := entry.Set(&served{queue}); err != nil {
		return fmt.Errorf("serving reservations: %w", err)
	}
	err = legacyregistry.CustomRegister(newCollector(queue, c))
	known := prometheus.AlreadyRegisteredError{} // a process of tests has several queues
	if err != nil && !errors.As(err, &known) {
		return fmt.Errorf("registering metrics of reservations: %w", err)
	}
	return nil
}

// served is the list, made anew for each read.
type served struct{ queue *waiting.Queue }

// MarshalJSON writes the list.
func (s *served) MarshalJSON() ([]byte, error) {
	content, err := json.Marshal(of(s.queue))
	if err != nil {
		return nil, fmt.Errorf("listing reservations: %w", err)
	}
	return content, nil
}

// GetObjectKind returns the kind of the list.
func (s *served) GetObjectKind() schema.ObjectKind {
	return &metav1.TypeMeta{APIVersion: config.APIVersion, Kind: "ReservationList"}
}

// DeepCopyObject returns the value itself: it holds nothing of its own.
func (s *served) DeepCopyObject() runtime.Object { return s }
