package gangpreemption

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// recorded records the related object and the note of each Event.
type recorded struct {
	related []runtime.Object
	notes   []string
}

func (e *recorded) Eventf(_, related runtime.Object, _, _, _, note string, args ...any) {
	e.related, e.notes = append(e.related, related), append(e.notes, fmt.Sprintf(note, args...))
}

// Tenants whose work leaves for a gang of their own namespace learn its name; others learn it neither from the message,
// which is also on their pods and groups, nor from the object that their Event is related to.
func TestPreempted_NamesNoOtherTenant(t *testing.T) {
	t.Parallel()
	by := metav1.ObjectMeta{Namespace: "secret-project", Name: "gpt"}
	for kind, x := range map[string]*waiting.Question{
		"gang": {Group: &schedulingv1beta1.PodGroup{ObjectMeta: by}},
		"pod":  {Waiting: []*corev1.Pod{{ObjectMeta: by}}},
	} {
		t.Run(kind, func(t *testing.T) { namesNoOtherTenant(t, preempted(x)) })
	}
}

func namesNoOtherTenant(t *testing.T, why cause) {
	t.Helper()
	for namespace, wantNamed := range map[string]bool{"secret-project": true, "team-a": false, "secret-project-2": false, "": false} {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "victim"}
		heard := &recorded{}
		why.record(heard, snapshot.Unit{Group: &schedulingv1beta1.PodGroup{ObjectMeta: meta}})
		why.record(heard, snapshot.Unit{Pods: []*corev1.Pod{{ObjectMeta: meta}}})
		for i, text := range append(heard.notes, why.to(namespace)) {
			if named := strings.Contains(text, "secret-project/gpt"); named != wantNamed {
				t.Errorf("namespace %q is told %q", namespace, text)
			}
			if !wantNamed && (strings.Contains(text, "gpt") || strings.Contains(text, "secret-project")) {
				t.Errorf("namespace %q is told %q", namespace, text)
			}
			if i < len(heard.related) && (heard.related[i] != nil) != wantNamed {
				t.Errorf("an Event of namespace %q is related to %v", namespace, heard.related[i])
			}
		}
	}
}

// fewGroups is a scheduler that knows the PodGroups of these names.
type fewGroups struct {
	fwk.Handle

	known []string
}

func (g fewGroups) PodGroupManager() fwk.PodGroupManager { return lister{known: g.known} }

type lister struct {
	fwk.PodGroupManager

	known []string
}

func (l lister) PodGroups() fwk.PodGroupLister { return l }

func (l lister) Get(_, name string) (*schedulingv1beta1.PodGroup, error) {
	if slices.Contains(l.known, name) {
		return &schedulingv1beta1.PodGroup{}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "podgroups"}, name)
}

// The nodes of gangs that started, and are gone by now, are not kept for ever.
func TestNominated_ForgetsGangsThatAreGone(t *testing.T) {
	t.Parallel()
	there, gone := types.NamespacedName{Name: "there"}, types.NamespacedName{Name: "gone"}
	p := GangPreemption{
		handle:    fewGroups{known: []string{there.Name}},
		nominated: map[types.NamespacedName]nominations{there: {}, gone: {}},
	}
	p.forgetGone()
	if _, kept := p.nominated[there]; !kept || len(p.nominated) != 1 {
		t.Errorf("kept are %v, want those of the gang that is there", p.nominated)
	}
}
