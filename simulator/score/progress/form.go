package progress

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// Form is the way in which progress is shown.
type Form string

// The forms.
const (
	// Screen is for a terminal: it is drawn anew in place, and reads keys.
	Screen Form = "screen"
	// Plain is a line every five seconds, without escape sequences.
	Plain Form = "plain"
	// JSON is an object a line, every second.
	JSON Form = "json"
	// None shows nothing.
	None Form = "none"
)

// auto is the form that ParseForm chooses by the output.
const auto = "auto"

// ParseForm reads a flag's value: a form, or auto (or nothing) for Fitting's. Anything else is bad input.
func ParseForm(asked string, out io.Writer, terminal string) (Form, error) {
	if asked == "" || asked == auto {
		return Fitting(out, terminal), nil
	}
	forms := []Form{Screen, Plain, JSON, None}
	if slices.Contains(forms, Form(asked)) {
		return Form(asked), nil
	}
	names := []string{auto}
	for _, f := range forms {
		names = append(names, string(f))
	}
	return "", &badinput.Error{
		Where: "--progress", What: fmt.Sprintf("progress cannot be shown as %q", asked),
		Mend: "name one of " + strings.Join(names, ", "),
	}
}

// Fitting returns the form for an output: Screen for a terminal whose kind (the variable TERM) can move its cursor,
// else Plain.
func Fitting(out io.Writer, terminal string) Form {
	file, ok := out.(*os.File)
	if ok && terminal != "" && terminal != "dumb" && term.IsTerminal(int(file.Fd())) {
		return Screen
	}
	return Plain
}
