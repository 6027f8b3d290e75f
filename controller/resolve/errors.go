package resolve

import "errors"

var (
	// ErrMissing indicates that a TrainJob names a runtime that does not exist (yet).
	ErrMissing = errors.New("the runtime does not exist")
	// ErrUnknown indicates that a TrainJob names a kind of runtime that this controller does not know.
	ErrUnknown = errors.New("unsupported runtime")
	// ErrFrozen indicates that the job's frozen state is there and cannot be used. It blocks the job until it is
	// deleted.
	ErrFrozen = errors.New("the frozen runtime cannot be used")
)
