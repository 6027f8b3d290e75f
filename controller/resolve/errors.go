package resolve

import "errors"

var (
	// ErrMissing indicates that a TrainJob names a runtime that does not exist (yet).
	ErrMissing = errors.New("the runtime does not exist")
	// ErrUnknown indicates that a TrainJob names a kind of runtime that this controller does not know.
	ErrUnknown = errors.New("unsupported runtime")
	// ErrSnapshot indicates that the job's snapshot is there and cannot be used. It stands in the way until it is deleted;
	// one of an earlier job of the same name goes by itself.
	ErrSnapshot = errors.New("unable to get runtime snapshot: invalid runtime snapshot")
)
