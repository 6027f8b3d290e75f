//go:build !linux

package testcluster

import "syscall"

// endsWithUs has no effect: only Linux can tie a process to another one.
func endsWithUs() *syscall.SysProcAttr { return nil }
