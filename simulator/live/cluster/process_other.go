//go:build !linux

package cluster

import "syscall"

// childAttributes gives a child its own process group. Only Linux can also tie its life to ours.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
