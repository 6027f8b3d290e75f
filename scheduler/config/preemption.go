package config

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// Preemption says when the eviction of workloads of a lower priority pays. It holds for all profiles of the scheduler.
type Preemption struct {
	// Prices say how much work others may lose for a workload, by its priority; priorities below the first price have
	// no limit. The default is 2 percent for priorities below 1,000,000, and no limit from there; an empty list is no
	// limit for any, as in Kubernetes.
	Prices []Price `json:"prices"`
	// RestartTime counts as lost, beside the work since the last checkpoint: an evicted workload assembles again and
	// loads its checkpoint. The default is 30 seconds.
	RestartTime *metav1.Duration `json:"restartTime,omitempty"`
	// MinRunTime protects workloads that have run for a shorter time from those with a price. The default is 0.
	MinRunTime *metav1.Duration `json:"minRunTime,omitempty"`
	// MostPerDay limits the evictions of a workload within 24 hours, by those with a price; 0 means without limit. The
	// default is one.
	MostPerDay *int32 `json:"mostPerDay,omitempty"`
}

// Price limits the work that others lose for a workload.
type Price struct {
	// FromPriority is the lowest priority that it is for; it ends where the next one begins.
	FromPriority int32 `json:"fromPriority"`
	// Percent limits the accelerator-hours that others lose for each hundred by which the workload starts earlier; 0
	// means without limit.
	Percent int64 `json:"percent"`
}

// mostPercent bounds a price: beyond it, a product might not be a number any more.
const mostPercent = 100_000

// Terms returns when an eviction pays.
func (a GangPlacementArgs) Terms() contention.Terms {
	p := a.Preemption
	p.setDefaults()
	out := contention.Terms{
		Restart: int64(p.RestartTime.Seconds()), MinRun: int64(p.MinRunTime.Seconds()), MaxPerDay: int(*p.MostPerDay),
	}
	for _, price := range p.Prices {
		out.Prices = append(out.Prices, contention.Price{From: price.FromPriority, Percent: price.Percent})
	}
	return out
}

func (p *Preemption) setDefaults() {
	terms := contention.DefaultTerms()
	if p.Prices == nil {
		for _, price := range terms.Prices {
			p.Prices = append(p.Prices, Price{FromPriority: price.From, Percent: price.Percent})
		}
	}
	p.RestartTime = cmp.Or(p.RestartTime, seconds(terms.Restart))
	p.MinRunTime = cmp.Or(p.MinRunTime, seconds(terms.MinRun))
	p.MostPerDay = cmp.Or(p.MostPerDay, new(int32(terms.MaxPerDay)))
}

func seconds(n int64) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

func (p *Preemption) validate() field.ErrorList {
	var faults field.ErrorList
	at := field.NewPath("preemption")
	for i, price := range p.Prices {
		of := at.Child("prices").Index(i)
		if price.Percent < 0 || price.Percent > mostPercent {
			faults = append(
				faults,
				field.Invalid(of.Child("percent"), price.Percent, "it must be between 0, for no limit, and 100000"),
			)
		}
		if i > 0 && price.FromPriority <= p.Prices[i-1].FromPriority {
			faults = append(
				faults,
				field.Invalid(of.Child("fromPriority"), price.FromPriority, "it must be above the one before"),
			)
		}
	}
	if d := p.RestartTime.Duration; d < 0 {
		faults = append(faults, field.Invalid(at.Child("restartTime"), d.String(), "it must not be negative"))
	}
	if d := p.MinRunTime.Duration; d < 0 {
		faults = append(faults, field.Invalid(at.Child("minRunTime"), d.String(), "it must not be negative"))
	}
	if *p.MostPerDay < 0 {
		faults = append(faults, field.Invalid(at.Child("mostPerDay"), *p.MostPerDay, "it must not be negative"))
	}
	return faults
}
