package framework

import (
	_ "embed" // the scripts
	"fmt"
	"strconv"
	"strings"
)

// Where a Flux job's files are. Images and users' commands count on these places.
const (
	fluxScripts    = "flux-entrypoint"
	fluxScriptsDir = "/etc/flux-config"
	fluxEntrypoint = "entrypoint.sh"
	fluxInit       = "init.sh"
	fluxCurve      = "flux-curve"
	fluxCurveDir   = "/curve"
	fluxRoot       = "/mnt/flux"
	fluxSoftware   = "/opt/software"
)

// The scripts are the same for every job. Different values are put before them as assignments.
var (
	//go:embed flux/init.sh
	fluxInitBody string
	//go:embed flux/entrypoint.sh
	fluxEntrypointBody string
)

// initScript sets Flux up in the volume that it shares with the node's container.
func (s fluxSettings) initScript() string {
	return script(fluxInitBody, [][2]string{
		{"job", s.job},
		{"namespace", s.namespace},
		{"subdomain", s.subdomain},
		{"hosts", s.hostlist()},
		{"device", s.device},
		{"policy", s.policy},
	})
}

// entrypointScript starts Flux, and the job's command in it.
func (s fluxSettings) entrypointScript() string {
	return script(fluxEntrypointBody, [][2]string{
		{"lead", s.prefix() + "0"},
		{"hosts", s.hostlist()},
		{"cores", span(int64(s.tasks))},
		{"gpus", span(s.gpus)},
		{"submit", s.submit()},
	})
}

// prefix is the name of each host, but for its number.
func (s fluxSettings) prefix() string { return s.job + "-node-0-" }

// hostlist names all hosts, in the order of their ranks, as Flux abbreviates it.
func (s fluxSettings) hostlist() string { return s.prefix() + "[" + span(int64(s.hosts)) + "]" }

// submit are the options with which the tasks are submitted. GPUs are requested per task, so each gets its share; where
// there are more tasks than GPUs Flux assigns none, and every task sees them all.
func (s fluxSettings) submit() string {
	options := fmt.Sprintf("-N %d -n %d", s.hosts, int64(s.tasks)*int64(s.hosts))
	switch share := s.gpus / max(1, int64(s.tasks)); {
	case s.gpus == 0:
		return options
	case share == 0:
		return options + " -o gpu-affinity=off"
	default:
		return options + " -g " + strconv.FormatInt(share, 10)
	}
}

// span is the numbers of n things: 0 or 0-(n-1), and nothing of nothing.
func span(n int64) string {
	switch {
	case n < 1:
		return ""
	case n == 1:
		return "0"
	}
	return "0-" + strconv.FormatInt(n-1, 10)
}

// script is a body of bash with variables assigned before it.
func script(body string, variables [][2]string) string {
	var text strings.Builder
	text.WriteString("#!/bin/bash\n")
	for _, variable := range variables {
		fmt.Fprintf(&text, "%s=%s\n", variable[0], shellWord(variable[1]))
	}
	return text.String() + "\n" + body
}
