package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// role is the variable with the role of a binary that was started again.
const role = "LOCKSTEP_REALNODE"

// The values of role.
const (
	inside = "inside" // the tests, in the namespaces
	asNode = "node"   // the supervisor of a node
)

// errRoot indicates that the tests do not run as root.
var errRoot = errors.New("real nodes need root: namespaces, mounts and control groups")

// Inside is the input of Main's body.
type Inside struct {
	// Dir is an empty folder.
	Dir string
	// Door is the listener that was given to Main; nil if there was none.
	Door net.Listener
}

// Main runs body in namespaces of its own with a folder of its own, and returns its exit code. The binary is started
// again with the same arguments, and has to reach Main again: body is run in there only. The folder is removed unless
// the code is another than 0.
//
// A door is a listener outside whose connections body accepts inside, because listeners stay in the network in which
// they were made. It may be nil.
func Main(ctx context.Context, door *net.TCPListener, body func(ctx context.Context, in Inside) int) int {
	switch os.Getenv(role) {
	case asNode:
		return complain(supervise(ctx))
	case inside:
		in, err := settle()
		if err != nil {
			return complain(err)
		}
		return body(ctx, in)
	}
	if os.Geteuid() != 0 {
		return complain(errRoot)
	}
	missing, err := makeFixed()
	defer removeFixed(missing)
	if err != nil {
		return complain(err)
	}
	group := fmt.Sprintf("lockstep-%d", os.Getpid())
	defer removeGroups(group)
	dir, err := os.MkdirTemp("", "lockstep-real-")
	if err != nil {
		return complain(fmt.Errorf("making a folder: %w", err))
	}
	code := complain(again(ctx, group, dir, door))
	if code != 0 {
		fmt.Fprintln(os.Stderr, "realnode: the logs are in", dir)
		return code
	}
	return complain(os.RemoveAll(dir))
}

// Again reports whether this process was started again by Main: it must be called then, whatever the flags say.
func Again() bool { return os.Getenv(role) != "" }

// IsNode reports whether this process was started to supervise programs. It has no arguments: Main must be called at
// once, and uses neither door nor body.
func IsNode() bool { return os.Getenv(role) == asNode }

// complain prints an error, and returns the exit code.
func complain(err error) int {
	if err == nil {
		return 0
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	fmt.Fprintln(os.Stderr, "realnode:", err)
	return 1
}

// The inputs of the binary that was started again: the name of the control group below which nodes have theirs, the
// folder, and the door if there is one.
const (
	groupVariable  = "LOCKSTEP_REALNODE_GROUP"
	folderVariable = "LOCKSTEP_REALNODE_FOLDER"
	// doorVariable is the descriptor of the door.
	doorVariable = "LOCKSTEP_REALNODE_DOOR"
)

// stopWithin is the time that the binary may take to stop.
const stopWithin = 20 * time.Second

// again starts this binary once more in new namespaces, and waits for its end. The kernel ends every process in there
// with the first one.
func again(ctx context.Context, group, dir string, door *net.TCPListener) error {
	if err := makeGroups(group); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this binary: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	runtime.LockOSThread() // the child ends with the thread that starts it, and this one waits
	child := exec.CommandContext(ctx, self, os.Args[1:]...)
	// Asked to stop, it has time to do so; tests take no notice.
	child.Cancel, child.WaitDelay = func() error { return child.Process.Signal(syscall.SIGTERM) }, stopWithin
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Env = append(os.Environ(), role+"="+inside, groupVariable+"="+group, folderVariable+"="+dir)
	if door != nil {
		file, err := door.File()
		if err != nil {
			return fmt.Errorf("handing a listener on: %w", err)
		}
		defer func() { _ = file.Close() }() // the child has its own descriptor
		child.ExtraFiles = []*os.File{file}
		child.Env = append(child.Env, doorVariable+"=3")
	}
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	return child.Run() //nolint:wrapcheck // only its exit code matters
}

// settle makes the new namespaces usable: mounts stay inside, /proc shows the processes that are here, and loopback and
// the bridge are up.
func settle() (Inside, error) {
	in := Inside{Dir: os.Getenv(folderVariable)}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return in, fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return in, fmt.Errorf("mounting /proc: %w", err)
	}
	if err := connect(); err != nil {
		return in, err
	}
	descriptor, err := strconv.Atoi(os.Getenv(doorVariable))
	if err != nil {
		return in, nil //nolint:nilerr // there is no door
	}
	unix.CloseOnExec(descriptor)
	in.Door, err = net.FileListener(os.NewFile(uintptr(descriptor), "door"))
	if err != nil {
		return in, fmt.Errorf("taking over a listener: %w", err)
	}
	return in, nil
}

// makeFixed makes the folders over which nodes mount theirs, and returns those that were not there.
func makeFixed() (missing []string, err error) {
	for _, folder := range fixed() {
		if _, err := os.Stat(folder); err == nil {
			continue
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return missing, fmt.Errorf("making a folder to mount over: %w", err)
		}
		missing = append(missing, folder)
	}
	return missing, nil
}

// removeFixed removes folders that were made to mount over; they are empty.
func removeFixed(missing []string) {
	for _, folder := range missing {
		if err := os.Remove(folder); err != nil {
			fmt.Fprintln(os.Stderr, "realnode:", err)
		}
	}
}

// hierarchies are the folders of control groups: one for each controller in version 1, one in all in version 2.
func hierarchies() ([]string, error) {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return []string{root}, nil
	}
	found, err := filepath.Glob(filepath.Join(root, "*", "cgroup.procs"))
	if err != nil {
		return nil, fmt.Errorf("looking for control groups: %w", err)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found, nil
}

// makeGroups makes a control group in all hierarchies.
func makeGroups(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range all {
		if err := os.MkdirAll(filepath.Join(hierarchy, name), 0o755); err != nil {
			return fmt.Errorf("making a control group: %w", err)
		}
		// In version 1 a cpuset is empty until its processors are set.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(hierarchy, file))
			if err == nil {
				_ = os.WriteFile(filepath.Join(hierarchy, name, file), content, 0o644) // version 2 has no need
			}
		}
	}
	return nil
}

// removeGroups removes a control group and those below it, whose processes have ended.
func removeGroups(name string) {
	all, err := hierarchies()
	if err != nil {
		return
	}
	for _, hierarchy := range all {
		removeBelow(filepath.Join(hierarchy, name))
	}
}

// removeBelow removes a folder of control groups from its leaves on: its files are the kernel's.
func removeBelow(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if entry.IsDir() {
			removeBelow(filepath.Join(folder, entry.Name()))
		}
	}
	if err := unix.Rmdir(folder); err != nil && !errors.Is(err, unix.ENOENT) {
		fmt.Fprintln(os.Stderr, "realnode: removing control group", folder+":", err)
	}
}
