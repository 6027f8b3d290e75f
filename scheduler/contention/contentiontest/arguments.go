package contentiontest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// arguments are the arguments of a command.
type arguments struct {
	words  []string
	values map[string]string
	err    error
}

func argumentsOf(args []Arg) arguments {
	a := arguments{values: make(map[string]string)}
	for _, arg := range args {
		if arg.Value == "" {
			a.words = append(a.words, arg.Key)
		}
		a.values[arg.Key] = arg.Value
	}
	return a
}

func (a *arguments) has(key string) bool {
	_, ok := a.values[key]
	return ok
}

func (a *arguments) fail(key string) {
	if a.err == nil {
		a.err = fmt.Errorf("%w: %s=%s", ErrScript, key, a.values[key])
	}
}

func (a *arguments) word(i int) string {
	if i >= len(a.words) {
		if a.err == nil {
			a.err = fmt.Errorf("%w: word %d is missing", ErrScript, i+1)
		}
		return ""
	}
	return a.words[i]
}

func (a *arguments) number(key string, otherwise int) int {
	if !a.has(key) {
		return otherwise
	}
	n, err := strconv.Atoi(a.values[key])
	if err != nil {
		a.fail(key)
	}
	return n
}

// duration reads seconds.
func (a *arguments) duration(key string, otherwise int64) int64 {
	if !a.has(key) {
		return otherwise
	}
	d, err := time.ParseDuration(a.values[key])
	if err != nil {
		a.fail(key)
	}
	return int64(d / time.Second)
}

// instant reads hours, minutes and perhaps seconds of a day; 2d+10:00 is two days later. Without the key it is 0.
func (a *arguments) instant(key string) int64 {
	if !a.has(key) {
		return 0
	}
	days, clock, later := strings.Cut(a.values[key], "d+")
	if !later {
		days, clock = "0", a.values[key]
	}
	n, err := strconv.Atoi(days)
	layout := "15:04"
	if strings.Count(clock, ":") > 1 {
		layout = "15:04:05"
	}
	of, errClock := time.Parse(layout, clock)
	if err != nil || errClock != nil {
		a.fail(key)
	}
	return int64(n)*24*3600 + int64(of.Hour()*3600+of.Minute()*60+of.Second())
}

// nodes reads nodes by number: n1-n4,n7.
func (a *arguments) nodes(text string) []int {
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err := strconv.Atoi(strings.TrimPrefix(first, "n"))
		to, errTo := strconv.Atoi(strings.TrimPrefix(last, "n"))
		if err != nil || errTo != nil || from < 1 || to < from {
			a.fail(text)
			return nil
		}
		for n := from; n <= to; n++ {
			out = append(out, n-1)
		}
	}
	return out
}
