package dra

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Demand holds the claims of one pod. It does not change.
type Demand struct {
	// Fault is one sentence on why the demand cannot be evaluated, with the request and the remedy; "" if it can.
	Fault string
	// Claims are the claims to allocate, as they were given. They may lack names and UIDs if they do not exist yet.
	Claims []*resourcev1.ResourceClaim
	// Extended are the extended resources that device classes stand for. A node that offers one itself gives it
	// without this room; on other nodes a claim is allocated for it.
	Extended []corev1.ResourceName

	*terms

	// without are the demands of nodes that offer some of Extended themselves, by which.
	without map[string]*Demand
}

// None reports whether the demand requests no devices.
func (d *Demand) None() bool { return d.Fault == "" && len(d.Claims) == 0 && len(d.Extended) == 0 }

// Same reports whether two demands cannot be answered differently. Demands of different Fitters are never the same.
func (d *Demand) Same(other *Demand) bool {
	return d.Fault == other.Fault && d.terms == other.terms && slices.Equal(d.Extended, other.Extended)
}

// terms are the common part of demands with the same claims, whatever the names of the claims.
type terms struct {
	// fault is the fault of them; then all but the number may be missing.
	fault         string
	claims        []*resourcev1.ResourceClaim
	deviceClasses deviceClasses
	lens          *lens
	requests      []request
	constraints   []constraint
	// kinds are the different lists of selectors.
	kinds [][]selector
	// selected caches the devices that the selectors of a kind select.
	selected map[selection]verdict
	number   uint32
	// price is that of all expressions that users wrote, of every request and alternative.
	price uint64
}

// request is a DeviceRequest of a claim, with its alternatives.
type request struct {
	claim int
	name  string
	// key is equal for requests that can stand for each other.
	key          string
	alternatives []alternative
}

// alternative is one alternative of a request, or the request itself.
type alternative struct {
	// name is request or request/alternative.
	name        string
	deviceClass string
	kind        int
	all, admin  bool
	derives     []resourcev1.DeviceDerivedAttribute
	count       int
	capacity    *resourcev1.CapacityRequirements
	tolerations []resourcev1.DeviceToleration
}

// constraint asks for one value of an attribute for the devices of several requests of a claim, or for a different one
// for each.
type constraint struct {
	claim     int
	attribute string
	distinct  bool
	// requests are those that are surely bound, whichever alternative is taken.
	requests []int
}

// selector is one expression and where it was read.
type selector struct {
	text     string
	of       string
	compiled cel.CompilationResult
}

// selection asks whether the selectors of a kind select a device, by the device's number through the demand's lens.
type selection struct {
	kind   int
	device uint32
}

// verdict is the answer; fault is the failure of an expression.
type verdict struct {
	yes   bool
	fault string
}
