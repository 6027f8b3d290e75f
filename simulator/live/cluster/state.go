package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// marker is the file that makes a directory a state directory of ours. It holds the process id of the run that owns it,
// and carries the lock that shows whether that run still lives.
const marker = "lockstep.pid"

// state is the directory of one run. Everything in it belongs to that run and is replaced by the next one.
type state struct {
	dir  string
	lock *os.File
}

// openState takes possession of dir, creating it if needed. Leftovers of an earlier run are removed. A directory that
// is in use by a live run, or that holds files that are not ours, is bad input.
func openState(dir string) (*state, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolving state directory %s: %w", dir, err)
	}
	if err := refuseForeign(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, badinput.At(dir, 0, "cannot be created: "+err.Error(), "choose another state directory with --dir")
	}
	lock, err := os.OpenFile(filepath.Join(dir, marker), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, badinput.At(dir, 0, "cannot be written: "+err.Error(), "choose another state directory with --dir")
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(lock.Name())
		_ = lock.Close()
		return nil, badinput.At(dir, 0, "is the state directory of a running lockstep up (process "+
			strings.TrimSpace(string(owner))+")", "use that cluster, stop it with Ctrl-C, or choose another --dir")
	}
	s := &state{dir: dir, lock: lock}
	if err := s.reset(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// refuseForeign reports a directory that has content but no marker: resetting it would delete someone's files.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return badinput.At(dir, 0, "is not a directory that can be read: "+err.Error(), "choose another --dir")
	}
	if _, err := os.Stat(filepath.Join(dir, marker)); len(entries) > 0 && err != nil {
		return badinput.At(dir, 0, "is not empty and is no state directory of lockstep", "choose an empty or new --dir")
	}
	return nil
}

// reset empties the directory but for the marker and writes the owner's process id.
func (s *state) reset() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("reading state directory: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == marker {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.dir, entry.Name())); err != nil {
			return fmt.Errorf("removing what an earlier run left: %w", err)
		}
	}
	for _, sub := range []string{"logs", "config", "pki", "tmp"} {
		if err := os.Mkdir(filepath.Join(s.dir, sub), 0o755); err != nil {
			return fmt.Errorf("creating state directory: %w", err)
		}
	}
	if err := s.lock.Truncate(0); err != nil {
		return fmt.Errorf("writing %s: %w", s.lock.Name(), err)
	}
	if _, err := s.lock.WriteAt([]byte(fmt.Sprintf("%d\n", os.Getpid())), 0); err != nil {
		return fmt.Errorf("writing %s: %w", s.lock.Name(), err)
	}
	return nil
}

// release gives the directory up; logs and configuration stay for reading.
func (s *state) release() error {
	if err := s.lock.Close(); err != nil {
		return fmt.Errorf("releasing state directory: %w", err)
	}
	return nil
}

func (s *state) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// write stores a file of the run, readable by its owner only: some carry tokens or keys.
func (s *state) write(content []byte, parts ...string) (string, error) {
	path := s.path(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("creating the folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	return path, nil
}

// Held returns the administrator's kubeconfig of the cluster whose state directory dir is, if the run that owns it
// lives.
func Held(dir string) (kubeconfig string, ok bool) {
	lock, err := os.Open(filepath.Join(dir, marker))
	if err != nil {
		return "", false
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if _ = lock.Close(); err == nil { // nothing was written, and a lock that was got is given back
		return "", false
	}
	kubeconfig = filepath.Join(dir, "kubeconfig")
	_, err = os.Stat(kubeconfig)
	return kubeconfig, err == nil
}
