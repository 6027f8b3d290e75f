package snapshot

import "k8s.io/client-go/tools/cache"

// ObjectOf returns the object that an informer's event is about, and false if it is no T. Of a deletion that was missed
// it is the object as it was last seen.
func ObjectOf[T any](event any) (object T, ok bool) {
	if missed, is := event.(cache.DeletedFinalStateUnknown); is {
		event = missed.Obj
	}
	object, ok = event.(T)
	return object, ok
}
