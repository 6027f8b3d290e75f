package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// stopGrace is the time that a child may take to end after it was asked to, as long as a pod; then it is killed.
const stopGrace = 30 * time.Second

// process is one child: a component of the embedded cluster with a log file of its own.
type process struct {
	name   string
	log    string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the child has ended

	component component
	// ready is set once the child was ready, failures is the number of failed checks in a row before.
	ready    atomic.Bool
	failures int
}

// DeathError is the error of a component that ended without being asked to.
type DeathError struct {
	Component string
	Log       string
	State     string
	Tail      string
}

// Error is one line that names the component, followed by the tail of its log.
func (e *DeathError) Error() string {
	return fmt.Sprintf("%s ended (%s); the end of %s:\n%s", e.Component, e.State, e.Log, e.Tail)
}

// spawner starts children from one operating system thread that lives as long as ctx. The kernel's parent-death
// signal is bound to the thread that forked, so a child outlives neither this process nor a stray thread's end.
type spawner struct {
	requests chan func()
}

func newSpawner(ctx context.Context) *spawner {
	s := &spawner{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for {
			select {
			case request := <-s.requests:
				request()
			case <-ctx.Done():
				// Staying locked would end the thread with the goroutine, and with it every child.
				runtime.UnlockOSThread()
				return
			}
		}
	}()
	return s
}

// start runs a component with its output in its log file. The child gets a process group of its own, so that a
// terminal's Ctrl-C reaches only us, and we end the children in order.
func (s *spawner) start(c component, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("creating the log of %s: %w", c.name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor; nothing was written through this one

	cmd := exec.Command(c.binary, c.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), c.env...)
	cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	s.requests <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	p := &process{name: c.name, log: logPath, cmd: cmd, exited: make(chan struct{}), component: c}
	go func() {
		_ = cmd.Wait() // the state is read from cmd.ProcessState
		close(p.exited)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// death describes a child that has ended by itself.
func (p *process) death() *DeathError {
	return &DeathError{Component: p.name, Log: p.log, State: p.cmd.ProcessState.String(), Tail: tail(p.log, 12)}
}

// stop asks the child to end and kills it after the grace. It returns when the child has ended.
func (p *process) stop(ctx context.Context) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended already
	grace, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	select {
	case <-p.exited:
	case <-grace.Done():
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// tail returns the last lines of a file, indented for quoting; a file that cannot be read is said to be so.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	all := strings.Split(string(bytes.TrimSpace(content)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "  " + strings.Join(all, "\n  ")
}
