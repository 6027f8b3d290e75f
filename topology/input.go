package topology

import (
	"errors"
	"fmt"
	"strings"
)

// The faults of a question. Each is the cause of an InputError that names the faulty value.
var (
	ErrTree        = errors.New("there is no tree")
	ErrLength      = errors.New("there must be one per node of the tree")
	ErrNegative    = errors.New("it is negative")
	ErrNoMembers   = errors.New("a gang needs at least one member")
	ErrShape       = errors.New("it has a shape that the gang lacks")
	ErrLevel       = errors.New("the tree has no such level")
	ErrNoLevel     = errors.New("it needs a level")
	ErrUnequal     = errors.New("the members are not a multiple of it")
	ErrTooLarge    = errors.New("no domain of the level could ever hold it")
	ErrInside      = errors.New("it is about a level inside a segment")
	ErrMin         = errors.New("it is more than there are members")
	ErrNode        = errors.New("there is no such node")
	ErrOrder       = errors.New("it is not further out than what is inside it")
	ErrDuplicate   = errors.New("it is there twice")
	ErrPattern     = errors.New("there is no such pattern of communication")
	ErrWeight      = errors.New("a weight is between 0 and 1000000")
	ErrCombination = errors.New("these rules cannot be combined")
)

// InputError reports that a question cannot be answered, whatever the fleet's state: waiting would not help.
type InputError struct {
	// Of is the gang or the tree that is wrong.
	Of string
	// What is the faulty field with its value, as the caller wrote it.
	What string
	// Hint is a valid alternative; it may be empty.
	Hint string
	// Cause is one of the errors above.
	Cause error
}

// Error returns one line: the fault, its place and the remedy.
func (e *InputError) Error() string {
	text := fmt.Sprintf("%s: %s: %v", e.Of, e.What, e.Cause)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return oneLine(text)
}

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Cause }

// knownLevels is the hint to a level that does not exist.
func knownLevels(levels []Level) string {
	if len(levels) == 0 {
		return "no node carries a topology label"
	}
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = l.label()
	}
	return "it has " + strings.Join(names, ", ")
}
