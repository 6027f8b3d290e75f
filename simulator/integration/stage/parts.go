package stage

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// InParts runs the tests of a package in several processes, each with a part of the tests. Tests that share a cluster run one after the
// other, and mostly wait. Whole runs them in this process, with one cluster: if there is one part, or if flags name tests. InParts
// returns the exit code. Each process prints when it has ended. Flags have been parsed; the package has the flag -parts.
func InParts(ctx context.Context, m *testing.M, parts int, out io.Writer, whole func() int) int {
	if isSet("test.list") {
		return m.Run() // no test runs, so no cluster is needed
	}
	if parts < 2 || isSet("test.run") || isSet("test.coverprofile") {
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

// divide deals the tests out, so that those of one file, which often last as long, are in different parts. Empty parts are left out.
func divide(tests []string, parts int) [][]string {
	out := make([][]string, min(parts, len(tests)))
	for i, test := range tests {
		out[i%len(out)] = append(out[i%len(out)], test)
	}
	return out
}

// partArguments are the arguments of a process that runs these tests: those of this process, except for the file in
// which one process reports to go test.
func partArguments(ours, tests []string) []string {
	var out []string
	for _, argument := range ours {
		if !strings.HasPrefix(argument, "-test.testlogfile=") {
			out = append(out, argument)
		}
	}
	return append(out, "-parts=1", "-test.run=^("+strings.Join(tests, "|")+")$")
}
