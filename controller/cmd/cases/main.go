// Command cases writes the planner's golden cases as folders of whole files, and takes Kubeflow Trainer's answers back
// from them.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/lockstep-project/lockstep/controller/plan/cases"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: cases unpack|take-answers CASES FOLDER")

func run(args []string) error {
	if len(args) != 3 {
		return errUsage
	}
	set, err := cases.Open(args[1])
	if err != nil {
		return err
	}
	for _, misfit := range set.Misfits() {
		fmt.Fprintln(os.Stderr, "cases: left out:", misfit)
	}
	switch args[0] {
	case "unpack":
		return set.Unpack(args[2])
	case "take-answers":
		if err := set.TakeAnswers(args[2]); err != nil {
			return err
		}
		return set.Save()
	}
	return errUsage
}
