package upgrade_test

import (
	"testing"
	"time"
)

// periods are spans of time.
type periods []struct{ from, to time.Time }

// foreignRoles are the periods in which a release still ran although the manifests of the next one were applied, as in
// an upgrade by Helm. Later releases need fewer rights, so the API server may refuse requests of the earlier one then.
var foreignRoles periods

func (p *periods) add(from, to time.Time) { *p = append(*p, struct{ from, to time.Time }{from, to}) }

// include reports whether a line of klog was written in one of the periods.
func (p *periods) include(line string) bool {
	const stamp = "0102 15:04:05.000000" // after the letter of the severity
	if len(line) <= len(stamp) {
		return false
	}
	at, err := time.ParseInLocation(stamp, line[1:1+len(stamp)], time.Local)
	if err != nil {
		return false
	}
	for _, period := range *p {
		if then := at.AddDate(period.from.Year(), 0, 0); !then.Before(period.from) && !then.After(period.to) {
			return true
		}
	}
	return false
}

func TestPeriods_Include(t *testing.T) {
	from := time.Date(2026, 11, 28, 19, 12, 30, 0, time.Local)
	var p periods
	p.add(from, from.Add(10*time.Second))
	for line, want := range map[string]bool{
		`E1128 19:12:37.710846   26048 controller.go:497] "Reconciler error" err="forbidden"`: true,
		`E1128 19:12:29.999999   26048 controller.go:497] "Reconciler error" err="forbidden"`: false,
		`E1128 19:12:40.000001   26048 controller.go:497] "Reconciler error" err="forbidden"`: false,
		"forbidden": false,
	} {
		if got := p.include(line); got != want {
			t.Errorf("%s: %t", line, got)
		}
	}
}
