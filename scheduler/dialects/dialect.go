// Package dialects reads the marks of gangs on pods: for each kind of controller, the label that marks the members, the
// object with the size of the gang, and the owner's reaction to the loss of a member.
package dialects

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-project/lockstep/topology"
)

// Loss describes the owner of a gang after the loss of a member.
type Loss string

const (
	// Replaced means that the member is created again, alone.
	Replaced Loss = "replaced"
	// Restarted means that all members are deleted and created again.
	Restarted Loss = "restarted"
	// Gone means that nothing is created again.
	Gone Loss = topology.OnLossGone
)

// Dialect is one way of marking gangs. Its functions are pure; those that may be nil say so.
type Dialect struct {
	// Name is in the names of PodGroups and in explanations: lower case, letters, digits and hyphens.
	Name string
	// Member has the keys of marks.
	Member Keys
	// Row is that of a configured dialect, nil for one that is built in.
	Row *Row
	// Group returns the name of a pod's group; empty for a pod that the dialect does not mark.
	Group func(pod *corev1.Pod) string
	// Source returns the object that describes a pod's group, in the pod's namespace. Nil if pods describe it themselves.
	Source func(pod *corev1.Pod) Source
	// Minimum returns the number of members that start together, at least 1. object, the source's content, may be nil.
	Minimum func(pod *corev1.Pod, object map[string]any) (int, error)
	// Rank returns a pod's place in its gang, from 0. Nil if the indices of Jobs and JobSets say it.
	Rank func(pod *corev1.Pod) (int, bool)
	// Wishes returns annotations that stand for the gang's wishes in fields or annotations of the dialect; nil for none.
	Wishes func(pod *corev1.Pod, object map[string]any) map[string]string
	// Loss describes the owner of a pod after its loss: of a gang whose owner creates nothing again, the scheduler
	// evicts no member. Pods and Jobs show the scheduler whether a lost member returns.
	Loss func(pod *corev1.Pod) Loss
	// Status returns the fields of the source's status that say where the gang stands. Nil for a dialect whose source says nothing of it.
	Status func(gang Standing) map[string]any
}

// Source names an object.
type Source struct {
	Resource schema.GroupVersionResource
	Name     string
}

// Mark names the gang of a pod, in the dialect of the controller that marked it.
type Mark struct {
	Dialect Dialect
	// Group is the gang's name in the dialect, PodGroup that of the PodGroup that stands for it.
	Group, PodGroup string
	// Key says where the pod has the mark: "label KEY" or "annotation KEY".
	Key string
}

// Table is an ordered list of dialects: of those that mark a pod, the first counts.
type Table []Dialect

// Builtin returns the dialects that need no configuration: of explicit marks, then of owners. Configured ones lie between.
func Builtin() (explicit, owners Table) {
	return Table{schedulerPlugins(), kueue(), leaderWorkerSet()}, Table{jobSet(), job()}
}

// Read returns a pod's mark.
func (t Table) Read(pod *corev1.Pod) (Mark, bool) {
	marks := t.All(pod)
	if len(marks) == 0 {
		return Mark{}, false
	}
	return marks[0], true
}

// All returns all marks of a pod, in the order of the table: the first counts.
func (t Table) All(pod *corev1.Pod) []Mark {
	var marks []Mark
	for _, dialect := range t {
		if mark, marked := dialect.read(pod); marked {
			marks = append(marks, mark)
		}
	}
	// Decoded pods have the field of Kubernetes' own groups filled in from another mark.
	filled := func(other Mark) bool {
		return other.Dialect.Name != native && other.PodGroup == marks[0].PodGroup
	}
	if len(marks) > 0 && marks[0].Dialect.Name == native && slices.ContainsFunc(marks, filled) {
		return marks[1:]
	}
	return marks
}

func (d Dialect) read(pod *corev1.Pod) (Mark, bool) {
	group := d.Group(pod)
	if group == "" {
		return Mark{}, false
	}
	if d.Name == native {
		return Mark{Dialect: d, Group: group, PodGroup: group, Key: "field spec.schedulingGroup"}, true
	}
	_, key := d.Member.first(pod)
	return Mark{Dialect: d, Group: group, PodGroup: podGroupName(d.Name, group), Key: key}, true
}

// LossOf describes the owner of a gang by its pods: the least that is done for one of them.
func (m Mark) LossOf(pods []*corev1.Pod) Loss {
	losses := map[Loss]bool{}
	for _, pod := range pods {
		losses[m.Dialect.Loss(pod)] = true
	}
	switch {
	case losses[Gone]:
		return Gone
	case losses[Restarted]:
		return Restarted
	}
	return Replaced
}

// ByName returns the dialect of a name.
func (t Table) ByName(name string) (Dialect, bool) {
	at := slices.IndexFunc(t, func(d Dialect) bool { return d.Name == name })
	if at < 0 {
		return Dialect{}, false
	}
	return t[at], true
}

// ErrNoSize indicates a mark whose object or pod does not state the number of members.
var ErrNoSize = errors.New("the gang's size cannot be read")

// podGroupName returns the name of the PodGroup for a group. A group's name is a label's value or an annotation's,
// which may have characters that an object's name must not have: then a digest replaces it, the same for equal names.
func podGroupName(dialect, group string) string {
	name := dialect + "." + group
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(group))
	return dialect + "." + hex.EncodeToString(sum[:sha256.Size/2])
}
