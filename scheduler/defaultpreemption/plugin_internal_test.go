package defaultpreemption

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// lost is the work of each pod by its name, in accelerator-seconds. Pods with an entry in keeps are protected.
type lost struct{ work, keeps map[string]int64 }

func (l lost) LostWork(pods []*corev1.Pod) int64 {
	var sum int64
	for _, pod := range pods {
		sum += l.work[pod.Name]
	}
	return sum
}

func (l lost) Protects(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return l.keeps[pod.Name] > 0 })
}

// victim is a pod that may leave.
func victim(t *testing.T, pod *corev1.Pod) preemption.Victim { //nolint:ireturn // as upstream's
	t.Helper()
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		t.Fatal(err)
	}
	v, err := preemption.NewVictim([]fwk.PodInfo{info}, *pod.Spec.Priority, fwk.PodKeyType)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func pod(name string, priority int32) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Priority: &priority}}
}

// Of the nodes with victims the one is chosen where the least is lost, after budgets and before kube-scheduler's own
// criteria.
func TestOrderedScoreFuncs_PreferLeastLoss(t *testing.T) {
	p := &LockstepDefaultPreemption{losses: lost{work: map[string]int64{"long": 7200, "short": 60, "other": 60}}}
	for name, c := range map[string]struct {
		victims map[string]*extenderv1.Victims
		want    string
	}{
		"a budget weighs more than work": {
			map[string]*extenderv1.Victims{
				"a": {Pods: []*corev1.Pod{pod("short", 0)}, NumPDBViolations: 1},
				"b": {Pods: []*corev1.Pod{pod("long", 0)}},
			}, "b",
		},
		"work weighs more than priority": {
			map[string]*extenderv1.Victims{
				"a": {Pods: []*corev1.Pod{pod("long", 0)}},
				"b": {Pods: []*corev1.Pod{pod("short", 5)}},
			}, "b",
		},
		"priority weighs more than number": {
			map[string]*extenderv1.Victims{
				"a": {Pods: []*corev1.Pod{pod("short", 5)}},
				"b": {Pods: []*corev1.Pod{pod("other", 0), pod("free", 0)}},
			}, "b",
		},
		"equals go by name": {
			map[string]*extenderv1.Victims{
				"b": {Pods: []*corev1.Pod{pod("short", 0)}},
				"a": {Pods: []*corev1.Pod{pod("other", 0)}},
			}, "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			funcs := p.OrderedScoreFuncs(t.Context(), c.victims)
			best := ""
			for node := range c.victims {
				if best == "" || before(funcs, node, best) {
					best = node
				}
			}
			if best != c.want {
				t.Errorf("the victims on %s leave, want those on %s", best, c.want)
			}
		})
	}
}

// before reports whether the first function that distinguishes two nodes prefers the first of them.
func before(funcs []func(string) int64, one, other string) bool {
	for _, score := range funcs {
		if a, b := score(one), score(other); a != b {
			return a > b
		}
	}
	return false
}

func TestMayLeave_SparesProtectedClasses(t *testing.T) {
	p := &LockstepDefaultPreemption{losses: lost{keeps: map[string]int64{"service": 1}}}
	for name, c := range map[string]struct {
		victim string
		by     int32
		want   bool
	}{
		"a pod":                                  {"batch", 10, true},
		"a protected one":                        {"service", 10, false},
		"a protected one, by a system component": {"service", scheduling.SystemCriticalPriority, true},
	} {
		if got := p.mayLeave(nil, victim(t, pod(c.victim, 0)), pod("new", c.by)); got != c.want {
			t.Errorf("%s may leave: %v, want %v", name, got, c.want)
		}
	}
}

// The one that would lose more work stays; of equals kube-scheduler's order decides, which spares the higher priority.
func TestStays_SparesMoreWork(t *testing.T) {
	p := &LockstepDefaultPreemption{losses: lost{work: map[string]int64{"long": 7200, "short": 60, "other": 60}}}
	if !p.stays(victim(t, pod("long", 0)), victim(t, pod("short", 5))) {
		t.Error("two hours of work leave for a minute of another priority")
	}
	if p.stays(victim(t, pod("short", 0)), victim(t, pod("other", 5))) {
		t.Error("of equals the less important one stays")
	}
}

// lister has one group.
type lister struct{ group *schedulingv1beta1.PodGroup }

var errNoGroup = errors.New("no group")

func (l lister) Get(_, name string) (*schedulingv1beta1.PodGroup, error) {
	if l.group.Name != name {
		return nil, errNoGroup
	}
	return l.group, nil
}

// A gang is shown as one that leaves as a whole, and the cached object is not changed.
func TestGroups_GangsLeaveAsAWhole(t *testing.T) {
	gang := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "train"}}
	gang.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 4}
	shown, err := groups{lister{gang}}.Get("default", "train")
	if err != nil || shown.Spec.DisruptionMode == nil || shown.Spec.DisruptionMode.All == nil {
		t.Errorf("%v, %+v: want the mode all", err, shown)
	}
	if gang.Spec.DisruptionMode != nil {
		t.Error("the cached group was changed")
	}
	loose := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "loose"}}
	if shown, err := (groups{lister{loose}}).Get("default", "loose"); err != nil || shown != loose {
		t.Errorf("%v, %+v: want a group without a gang as it is", err, shown)
	}
	if _, err := (groups{lister{gang}}).Get("default", "gone"); !errors.Is(err, errNoGroup) {
		t.Errorf("%v, want the lister's error", err)
	}
}
