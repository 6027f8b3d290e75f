package testcluster

import "syscall"

// endsWithUs ties a process to this one, however this one ends.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
