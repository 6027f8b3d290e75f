package testcluster

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// InParts runs the tests of a package in several processes, each with a part of the tests. Tests that share a cluster
// run one after the other, and mostly wait. Whole runs them in this process, with one cluster: if there is one part, if
// flags name tests, or if go test may store the result (without -count and -shuffle), since it then follows which files
// this process reads. InParts returns the exit code. Each process prints when it has ended. Flags have been parsed; the
// package has the flag -parts.
func InParts(ctx context.Context, m *testing.M, parts int, out io.Writer, whole func() int) int {
	if isSet("test.list") {
		return m.Run() // no test runs, so no cluster is needed
	}
	if parts < 2 || isSet("test.run") || isSet("test.coverprofile") || isSet("test.testlogfile") {
		return whole()
	}
	list, err := exec.CommandContext(ctx, os.Args[0], "-test.list=^Test").Output()
	if err != nil {
		_, _ = fmt.Fprintln(out, "listing the tests:", err)
		return 1
	}
	divided := divide(strings.Fields(string(list)), parts)
	codes := make([]int, len(divided))
	var printing sync.Mutex
	var all sync.WaitGroup
	for i, tests := range divided {
		all.Go(func() {
			runtime.LockOSThread() // the kernel ends the process when this thread ends
			var printed bytes.Buffer
			part := exec.CommandContext(ctx, os.Args[0], partArguments(os.Args[1:], tests)...)
			part.Stdout, part.Stderr, part.SysProcAttr = &printed, &printed, endsWithUs()
			err := part.Run()
			printing.Lock()
			defer printing.Unlock()
			_, _ = out.Write(printed.Bytes())
			if err != nil {
				_, _ = fmt.Fprintf(out, "part %d of %d, of %d tests: %v\n", i+1, len(divided), len(tests), err)
				codes[i] = 1
			}
		})
	}
	all.Wait()
	for _, code := range codes {
		if code != 0 {
			return code
		}
	}
	return 0
}

// isSet reports whether a flag of the test binary has a value.
func isSet(name string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() != ""
}

// divide deals the tests out, so that those of one file, which often last as long, are in different parts. Empty parts
// are left out.
func divide(tests []string, parts int) [][]string {
	out := make([][]string, min(parts, len(tests)))
	for i, test := range tests {
		out[i%len(out)] = append(out[i%len(out)], test)
	}
	return out
}

// partArguments are the arguments of a process that runs these tests: those of this process, and the tests.
func partArguments(ours, tests []string) []string {
	return append(slices.Clone(ours), "-parts=1", "-test.run=^("+strings.Join(tests, "|")+")$")
}
