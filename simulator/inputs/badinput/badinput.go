package badinput

import (
	"errors"
	"fmt"
	"strings"
)

// Error is input that cannot be used.
type Error struct {
	// What is the fault, in the user's words: "the group has no capacity".
	What string
	// Where it stands: a flag, a file, or file:line.
	Where string
	// Mend is the remedy, or empty where What already gives it.
	Mend string
}

// At returns an error about a line of a file; line 0 means the whole file.
func At(file string, line int, what, mend string) *Error {
	return &Error{Where: Position(file, line), What: what, Mend: mend}
}

// Is reports whether err is, or wraps, bad input.
func Is(err error) bool {
	var bad *Error
	return errors.As(err, &bad)
}

// Position formats a place in a file as editors and terminals understand it.
func Position(file string, line int) string {
	if line <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// Error returns one line, "<where>: <what>; <mend>", whatever the parts contain.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Where != "" {
		b.WriteString(oneLine(e.Where) + ": ")
	}
	b.WriteString(oneLine(e.What))
	if e.Mend != "" {
		b.WriteString("; " + oneLine(e.Mend))
	}
	return b.String()
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
