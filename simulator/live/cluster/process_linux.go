package cluster

import "syscall"

// childAttributes ties a child to us: its own process group, and death when we die, however we die.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
