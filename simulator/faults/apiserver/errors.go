package apiserver

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	errNoPod   = errors.New("what is stored as a pod is none")
	errNoPatch = errors.New("there is no such kind of patch")
)

func resource(kind string) schema.GroupResource { return schema.GroupResource{Resource: kind} }

// API errors are answered unchanged, here and below.

// NotFound says that there is no object of a name.
func NotFound(kind, name string) error {
	return apierrors.NewNotFound(resource(kind), name) //nolint:wrapcheck // as above
}

// BadRequest says that a request cannot be read.
func BadRequest(err error) error { return apierrors.NewBadRequest(err.Error()) } //nolint:wrapcheck // as above

func alreadyExists(kind, name string) error {
	return apierrors.NewAlreadyExists(resource(kind), name) //nolint:wrapcheck // as above
}

func conflict(kind, name, why string) error {
	return apierrors.NewConflict(resource(kind), name, errors.New(why)) //nolint:wrapcheck,err113 // as above
}

func internal(err error) error { return apierrors.NewInternalError(err) } //nolint:wrapcheck // as above
