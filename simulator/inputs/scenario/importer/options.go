package importer

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// withDefaults fills in the options that are 0.
func withDefaults(o scenario.Options) scenario.Options {
	o.Load, o.DefaultRunTime = cmp.Or(o.Load, 1), cmp.Or(o.DefaultRunTime, time.Hour)
	return o
}

// checkOptions refuses options out of their range, except for the load: trace.Compress checks that.
func checkOptions(o scenario.Options) error {
	switch {
	case o.Estimates != 0 && !(o.Estimates >= 1 && o.Estimates <= 1000):
		return &badinput.Error{
			What: "estimates of " + strconv.FormatFloat(o.Estimates, 'g', -1, 64) + " times the duration cannot be had",
			Mend: "write a number from 1 to 1000, or 0 for no estimates",
		}
	case !(o.Silent >= 0 && o.Silent <= 1):
		return &badinput.Error{
			What: "a share of " + strconv.FormatFloat(1-o.Silent, 'g', -1, 64) + " of the jobs cannot state a deadline",
			Mend: "write a number from 0 to 1, or all, half or none",
		}
	case o.DefaultRunTime < 0 || o.DefaultRunTime > trace.MostTime:
		return &badinput.Error{
			What: fmt.Sprintf("what waits cannot run for %s", o.DefaultRunTime),
			Mend: "write a duration above 0, such as 1h, or 0 for that",
		}
	}
	return checkCosts(o.Costs)
}
