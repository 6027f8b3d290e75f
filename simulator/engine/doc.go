// Package engine defines the player of a scenario and the events that it reports. Package direct drives
// contention.Machine, package kube steps the real kube-scheduler. A scenario that is played twice gives equal events on
// any machine.
package engine
