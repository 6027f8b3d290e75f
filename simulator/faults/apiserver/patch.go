package apiserver

import (
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch changes an object by a merge patch, a strategic merge patch or a JSON patch. The error is an API error.
func (s *Server) Patch(
	kind string, name types.NamespacedName, by types.PatchType, data []byte, subresource string,
) (client.Object, error) {
	old, err := s.Get(kind, name)
	if err != nil {
		return nil, err
	}
	was, err := json.Marshal(old)
	if err != nil {
		return nil, internal(err)
	}
	next := empty(old)
	is, err := merged(was, by, data, next)
	if err != nil {
		return nil, BadRequest(err)
	}
	if err := json.Unmarshal(is, next); err != nil {
		return nil, BadRequest(err)
	}
	return s.Update(next, subresource)
}

// merged applies a patch.
func merged(was []byte, by types.PatchType, data []byte, as client.Object) (is []byte, err error) {
	switch by {
	case types.MergePatchType:
		is, err = jsonpatch.MergePatch(was, data)
	case types.StrategicMergePatchType:
		is, err = strategicpatch.StrategicMergePatch(was, data, as)
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(data); err == nil {
			is, err = patch.Apply(was)
		}
	default:
		err = errNoPatch
	}
	if err != nil {
		return nil, fmt.Errorf("applying a patch %s: %w", by, err)
	}
	return is, nil
}

// Apply applies a manager's wanted object. Fields that the manager applied before and no longer wants are removed. The
// error is an API error.
func (s *Server) Apply(
	manager string, wanted client.Object, data []byte, subresource string,
) (client.Object, error) {
	kind, name := s.KindOf(wanted), client.ObjectKeyFromObject(wanted)
	old, err := s.Get(kind, name)
	if err != nil {
		next := empty(s.typed(wanted))
		if err := json.Unmarshal(data, next); err != nil {
			return nil, BadRequest(err)
		}
		o, err := s.Create(next)
		if err == nil {
			s.remember(kind, o.GetUID(), manager, data)
		}
		return o, err
	}
	was, err := json.Marshal(old)
	if err != nil {
		return nil, internal(err)
	}
	before := s.of(kind).applied[old.GetUID()][manager]
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, data, was)
	if err != nil {
		return nil, BadRequest(err)
	}
	o, err := s.Patch(kind, name, types.MergePatchType, patch, subresource)
	if err == nil {
		s.remember(kind, o.GetUID(), manager, data)
	}
	return o, err
}

func (s *Server) remember(kind string, uid types.UID, manager string, data []byte) {
	c := s.of(kind)
	if c.applied[uid] == nil {
		c.applied[uid] = make(map[string][]byte, 1)
	}
	c.applied[uid][manager] = data
}

// typed is a new object of the Go type that the scheme has for the kind of an object, or that object.
func (s *Server) typed(o client.Object) client.Object {
	gvk := o.GetObjectKind().GroupVersionKind()
	if made, err := s.scheme.New(gvk); err == nil {
		if typed, ok := made.(client.Object); ok {
			return typed
		}
	}
	return o
}

// empty is a new object of the same Go type.
func empty(o client.Object) client.Object {
	made, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(o).Elem()))
	if !ok {
		panic(fmt.Sprintf("a new %T is no API object", o))
	}
	return made
}
