// Package engine says what plays a scenario, and how what happens is told. The packages below it do: direct drives
// contention.Machine, kube steps the real kube-scheduler. A scenario that is played twice gives equal events, whatever the machine.
package engine
