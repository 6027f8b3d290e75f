// Command versions makes a table of the logs that make test-versions writes: for each release of Kubernetes and each
// mode the number of integration tests that passed, and the skipped ones with their reasons. It fails if a test failed,
// or if a log has no end.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: versions FOLDER, in which there are RELEASE-MODE.log")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

// suite holds the result of one log.
type suite struct {
	release, mode  string
	passed, failed int
	// skipped are the tests that were left out, by why.
	skipped map[string][]string
	ended   bool
}

var errFailed = errors.New("not all tests passed")

func run(folder string, out io.Writer) error {
	files, err := filepath.Glob(filepath.Join(folder, "*-*.log"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("there are no logs in %s: %w", folder, errors.Join(err, os.ErrNotExist))
	}
	var suites []suite
	for _, file := range files {
		read, err := readLog(file)
		if err != nil {
			return err
		}
		suites = append(suites, read)
	}
	return table(suites, out)
}

// table prints the suites, and returns errFailed if one of them did not pass.
func table(suites []suite, out io.Writer) error {
	var text strings.Builder
	text.WriteString("| Kubernetes | mode | passed | failed | skipped |\n|---|---|---:|---:|---|\n")
	var failure error
	for _, s := range suites {
		var why []string
		for _, reason := range slices.Sorted(maps.Keys(s.skipped)) {
			why = append(
				why,
				fmt.Sprintf("%d: %s (%s)", len(s.skipped[reason]), reason, strings.Join(s.skipped[reason], ", ")),
			)
		}
		fmt.Fprintf(
			&text,
			"| %s | %s | %d | %d | %s |\n",
			s.release,
			s.mode,
			s.passed,
			s.failed,
			strings.Join(why, "; "),
		)
		if s.failed > 0 || !s.ended {
			failure = fmt.Errorf("%s in mode %s: %w", s.release, s.mode, errFailed)
		}
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return failure
}

// verdict matches the line with which go test ends a test; subtests are indented, and do not count.
var verdict = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+) `)

// reason is the line that a test writes before it is skipped.
var reason = regexp.MustCompile(`^    \S+_test\.go:\d+: (.*)$`)

func readLog(path string) (suite, error) {
	file, err := os.Open(path)
	if err != nil {
		return suite{}, fmt.Errorf("reading a log: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	release, mode, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".log"), "-")
	read := suite{release: release, mode: mode, skipped: map[string][]string{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	said := ""
	for lines.Scan() {
		if found := reason.FindStringSubmatch(lines.Text()); found != nil {
			said = found[1]
		}
		read.ended = read.ended || lines.Text() == "PASS"
		found := verdict.FindStringSubmatch(lines.Text())
		switch {
		case found == nil:
			continue
		case found[1] == "PASS":
			read.passed++
		case found[1] == "FAIL":
			read.failed++
		default:
			read.skipped[said] = append(read.skipped[said], found[2])
		}
		said = ""
	}
	if err := lines.Err(); err != nil {
		return suite{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return read, nil
}
