// Command packages prints folders of the module's packages that have tests, for make: those that a change concerns, and
// those whose tests start no program. It asks go list about the module.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const usage = `usage: packages [-without FOLDER,...] changed < names of changed files, one on each line
       packages alone | others`

// errUsage is the error of a command line that asks for no packages.
var errUsage = errors.New(usage)

func main() {
	without := flag.String("without", "", "folders whose packages are left out, separated by commas; for changed")
	flag.Parse()
	if err := run(context.Background(), os.Stdin, os.Stdout, flag.Args(), strings.Split(*without, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		if errors.Is(err, errUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, args, without []string) error {
	if len(args) != 1 {
		return errUsage
	}
	all, err := list(ctx)
	if err != nil {
		return err
	}
	var dirs []string
	switch args[0] {
	case "changed":
		var files []string
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			files = append(files, scanner.Text())
		}
		dirs = concerned(all, files, without)
	case "alone":
		dirs, _ = selfContained(all)
	case "others":
		_, dirs = selfContained(all)
	default:
		return errUsage
	}
	for _, dir := range dirs {
		if _, err := fmt.Fprintln(out, "./"+dir); err != nil {
			return fmt.Errorf("printing packages: %w", err)
		}
	}
	return nil
}
