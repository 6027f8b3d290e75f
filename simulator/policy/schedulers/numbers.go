package schedulers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/engine/direct"
)

// number is one of Lockstep's that a name may set: lockstep:slack=20.
type number struct {
	// name precedes the equals sign, about describes the number with %d in its place.
	name, about string
	set         func(*direct.Options, int)
}

// numbers lists them. Each is from 1 to mostOfNumber.
func numbers() []number {
	const hour = 3600
	return []number{
		{
			"slack",
			"due by %d %% of the run time (queueing.slackPercent)",
			func(o *direct.Options, n int) { o.Slack = int64(n) },
		},
		{
			"idle",
			"with reservations that idle for %d hours (queueing.idleTime)",
			func(o *direct.Options, n int) { o.Idle = hour * int64(n) },
		},
		{"leases", "with %d reservations at a time", func(o *direct.Options, n int) { o.Leases = n }},
	}
}

// mostOfNumber is contention.MaxSlack, and more than is of use for the others.
const mostOfNumber = 1000

// numbered returns the variant of a name with a number; false if it is none.
func numbered(suffix string) (variant, bool) {
	name, text, _ := strings.Cut(suffix, "=")
	for _, of := range numbers() {
		n, err := strconv.Atoi(text)
		if of.name == name && err == nil && n >= 1 && n <= mostOfNumber && text == strconv.Itoa(n) {
			return variant{suffix, fmt.Sprintf(of.about, n), func(o *direct.Options) { of.set(o, n) }}, true
		}
	}
	return variant{}, false
}

// Choices lists all names for people, those with a number with N in its place.
func Choices() string {
	all := Names()
	for _, of := range numbers() {
		all = append(all, Lockstep+":"+of.name+"=N")
	}
	return strings.Join(all, ", ")
}
