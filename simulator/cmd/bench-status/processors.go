package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// processors are seconds of processor time by component, since each was started; empty where there is no /proc.
type processors map[string]float64

// processors reads the processor time of all components, and of this process, which sends the reports.
func (s *stage) processors() processors {
	times := processors{"generator": processorTime(os.Getpid())}
	for _, component := range s.cluster.Components() {
		times[component.Name] = processorTime(component.PID)
	}
	return times
}

// processorTime returns the processor time that a process has used, in seconds; 0 if that is not known.
func processorTime(pid int) float64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in brackets, may have blanks. utime and stime are the 12th and 13th field after it, in hundredths of a
	// second.
	const user, system, perSecond = 11, 12, 100
	fields := strings.Fields(string(content)[strings.LastIndexByte(string(content), ')')+1:])
	if len(fields) <= system {
		return 0
	}
	ticks := 0.0
	for _, field := range []string{fields[user], fields[system]} {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0
		}
		ticks += value
	}
	return ticks / perSecond
}

// since returns the number of cores that each component used between two readings.
func (p processors) since(later processors, seconds float64) map[string]float64 {
	cores := map[string]float64{}
	for name, used := range later {
		cores[name] = (used - p[name]) / seconds
	}
	return cores
}
