// Package liverun runs a workload on an embedded cluster: it submits every object, follows every TrainJob to its end,
// and reports the node of each rank.
//
// Check, Submit, Run and Report are the steps; follow.go watches, wait.go detects that there is nothing left to wait
// for.
package liverun
