package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// planVariable has the plan of a node, as JSON.
const planVariable = "LOCKSTEP_REALNODE_PLAN"

// nodePlan is the configuration of a supervisor.
type nodePlan struct {
	// Dir is the folder of the programs' files and output.
	Dir string
	// Fixed are folders that the programs insist on. In their mount namespace they are below Dir.
	Fixed []string
	// Programs are started in order. The node ends when one of them does.
	Programs []program
}

// program is one of a node's, with its log in the node's folder.
type program struct {
	Name string
	Args []string
	// Socket is a file that the program makes when others may use it; empty for none. A kubelet ends if its container
	// runtime does not answer.
	Socket string
}

// fixed are the folders that the programs of a node insist on.
func fixed() []string {
	return []string{
		"/var/lib/kubelet",
		"/var/log/pods",
		"/var/log/containers",
		"/run/containerd",
		"/run/netns",
		"/var/lib/cni",
		"/etc/cni",
	}
}

// supervisor is a process that runs the programs of a plan.
type supervisor struct {
	process *exec.Cmd
	log     string
	ended   chan struct{}
}

// check returns the error of a supervisor that has ended, with its log.
func (s *supervisor) check() error {
	select {
	case <-s.ended:
		said, err := os.ReadFile(s.log)
		return fmt.Errorf("a supervisor ended: %s: %w", said, errors.Join(errEnded, err))
	default:
		return nil
	}
}

// kill ends a supervisor and its programs.
func (s *supervisor) kill() error {
	if err := s.process.Process.Kill(); err != nil {
		return fmt.Errorf("killing a supervisor: %w", err)
	}
	<-s.ended
	return nil
}

// startSupervisor starts this binary as the supervisor of a plan.
func startSupervisor(plan nodePlan) (*supervisor, error) {
	encoded, err := json.Marshal(plan)
	if err != nil {
		return nil, fmt.Errorf("encoding what a supervisor runs: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this binary: %w", err)
	}
	log, err := os.Create(filepath.Join(plan.Dir, "supervisor.log"))
	if err != nil {
		return nil, fmt.Errorf("creating the log of a supervisor: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	s := &supervisor{process: exec.Command(self), log: log.Name(), ended: make(chan struct{})}
	s.process.Stdout, s.process.Stderr = log, log
	s.process.Env = append(os.Environ(), role+"="+asNode, planVariable+"="+string(encoded))
	s.process.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("starting a supervisor: %w", err)
	}
	go func() {
		defer close(s.ended)
		_ = s.process.Wait() // its log has the reason of its end
	}()
	return s, nil
}

// supervise runs the programs of a plan, in a mount namespace of its own.
func supervise(ctx context.Context) error {
	runtime.LockOSThread() // the programs end with the thread that started them, and that is this one
	var plan nodePlan
	if err := json.Unmarshal([]byte(os.Getenv(planVariable)), &plan); err != nil {
		return fmt.Errorf("reading the plan of a node: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	for _, folder := range plan.Fixed {
		if err := bind(filepath.Join(plan.Dir, "fixed", folder), folder); err != nil {
			return err
		}
	}
	// Kubelets want their volumes to be seen by containers that were started before.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts: %w", err)
	}
	ended := make(chan error, len(plan.Programs))
	for _, one := range plan.Programs {
		command, err := start(ctx, plan.Dir, one)
		if err != nil {
			return err
		}
		go func() { ended <- fmt.Errorf("%s ended: %w", one.Name, errors.Join(command.Wait(), errEnded)) }()
		if err := waitForFile(ctx, one.Socket); err != nil {
			return fmt.Errorf("waiting for %s: %w", one.Name, err)
		}
	}
	return <-ended
}

// waitForFile waits until a file is there; "" is.
func waitForFile(ctx context.Context, file string) error {
	err := wait.PollUntilContextTimeout(ctx, readyEvery/10, readyWithin, true, func(context.Context) (bool, error) {
		_, err := os.Stat(file)
		return file == "" || err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", file, err)
	}
	return nil
}

// errEnded indicates that a program of a node ended.
var errEnded = errors.New("a node's programs run until the node is stopped")

// bind puts a folder in the place of a fixed one.
func bind(from, to string) error {
	if err := os.MkdirAll(from, 0o755); err != nil {
		return fmt.Errorf("making a folder of a node: %w", err)
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting over %s: %w", to, err)
	}
	return nil
}

func start(ctx context.Context, dir string, one program) (*exec.Cmd, error) {
	log, err := os.Create(filepath.Join(dir, one.Name+".log"))
	if err != nil {
		return nil, fmt.Errorf("creating the log of %s: %w", one.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	command := exec.CommandContext(ctx, one.Args[0], one.Args[1:]...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(one.Args[0])+":"+os.Getenv("PATH"))
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", one.Name, err)
	}
	return command, nil
}
