package whatiftest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/whatif"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// Draw does a command that draws, and reports whether it was one:
//
//	fleet                            the picture is the input
//	runs a [SETTING]...              changes gang a of the picture, or the single pod a of a capital A
//	waits x workers=4 gpus=4 queued=10 [SETTING]...
//	budget a allowed=0               protects gang a
//	publishes r1 pairs=4 broken=1    nodes of a rack, or one, publish pairs of a GPU and a NIC instead of GPUs
//
// Settings: require=rack, priority=10, end=2h (from now), told=10m/40m/2h (when eight in ten such waits end, and half
// of them, from now), ran=3h, saved=30m (ago), replace, never, min=4, gate=NAME, late=1, scheduler=NAME,
// owner=DaemonSet, leaving, over (its pods have ended), protected (by its PriorityClass), lost=0 (the completion index
// of a member that does not exist), claims=2 (pairs of each member, by a template; 0: one that does not exist), has=2
// (of members that run: the first pairs of their nodes).
func Draw(o *whatif.Objects, d *datadriven.TestData) (drawn bool, err error) {
	switch d.Cmd {
	case "fleet":
		*o, err = Fleet(d.Input)
		return true, err
	case "waits":
		w := Wait{Name: d.CmdArgs[0].Key}
		for key, into := range map[string]*int{"workers": &w.Workers, "gpus": &w.GPUs, "queued": &w.Queued} {
			if err := number(d, key, into); err != nil {
				return true, err
			}
		}
		Add(o, w)
	case "budget":
		allowed := 0
		if err := number(d, "allowed", &allowed); err != nil {
			return true, err
		}
		o.Budgets = append(o.Budgets, budget(d.CmdArgs[0].Key, int32(allowed)))
		return true, nil
	case "publishes":
		return true, publish(o, d)
	case "runs":
	default:
		return false, nil
	}
	name := d.CmdArgs[0].Key
	for _, arg := range d.CmdArgs[1:] {
		value := ""
		if len(arg.Vals) > 0 {
			value = arg.Vals[0]
		}
		if err := set(o, name, arg.Key, value); err != nil {
			return true, fmt.Errorf("%s %s: %w", name, arg, err)
		}
	}
	return true, nil
}

// number reads an argument where it is given.
func number(d *datadriven.TestData, key string, into *int) error {
	for _, arg := range d.CmdArgs {
		if arg.Key != key {
			continue
		}
		n, err := strconv.Atoi(arg.Vals[0])
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		*into = n
	}
	return nil
}

// set changes a gang or a single pod.
func set(o *whatif.Objects, name, key, value string) error {
	group := Group(*o, name)
	pods := members(*o, name)
	if known, err := setClaims(o, pods, key, value); known || err != nil {
		return err
	}
	if group != nil {
		for _, p := range pods {
			p.Labels["gang"] = name
		}
		if known, err := setGroup(o, group, key, value); known || err != nil {
			return err
		}
	}
	if key == "protected" {
		o.PriorityClasses = append(o.PriorityClasses, protected())
	}
	for _, p := range pods {
		if err := setPod(p, key, value); err != nil {
			return err
		}
	}
	if key == "priority" && group != nil {
		group.Spec.Priority = pods[0].Spec.Priority
	}
	return nil
}

// setClaims does the settings of claims.
func setClaims(o *whatif.Objects, pods []*corev1.Pod, key, value string) (known bool, err error) {
	if key != "claims" && key != "has" {
		return false, nil
	}
	pairs, err := strconv.Atoi(value)
	if err != nil {
		return true, fmt.Errorf("a number of pairs: %w", err)
	}
	if key == "has" {
		give(o, pods, pairs)
	} else {
		claim(o, pods, pairs)
	}
	return true, nil
}

// setGroup does the settings of a PodGroup.
func setGroup(o *whatif.Objects, group *schedulingv1beta1.PodGroup, key, value string) (known bool, err error) {
	switch key {
	case "workers", "gpus", "queued":
	case "require":
		group.Annotations[topology.AnnotationRequiredTopology] = value
	case "end", "saved":
		after, err := time.ParseDuration(value)
		if err != nil {
			return true, fmt.Errorf("a duration: %w", err)
		}
		annotation := topology.AnnotationExpectedEnd
		if key == "saved" {
			annotation, after = topology.AnnotationLastCheckpoint, -after
		}
		group.Annotations[annotation] = Now().Add(after).Format(time.RFC3339)
	case "told":
		return true, setTold(group, value)
	case "min":
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return true, fmt.Errorf("a number: %w", err)
		}
		group.Spec.SchedulingPolicy.Gang.MinCount = int32(n)
	case "replace":
		o.Replaces[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}] = true
	case "late":
		group.Annotations[topology.AnnotationLateMembers] = `[{"metadata":{"name":"` + group.Name +
			`-launcher","labels":{"role":"launcher"}},"spec":{"containers":[{"name":"main","resources":{"requests":` +
			`{"nvidia.com/gpu":"` + value + `"}}}]}}]`
	case "lost":
		for i, p := range o.Pods {
			if p.Name == group.Name+"-"+value {
				o.Pods = append(o.Pods[:i:i], o.Pods[i+1:]...)
				break
			}
		}
	default:
		return false, nil
	}
	return true, nil
}

// setTold lets the scheduler have said when a gang starts.
func setTold(group *schedulingv1beta1.PodGroup, value string) error {
	var at [3]string
	parts := strings.Split(value, "/")
	for i := range at {
		after, err := time.ParseDuration(parts[min(i, len(parts)-1)])
		if err != nil {
			return fmt.Errorf("three durations: %w", err)
		}
		at[i] = Now().Add(after).Format(time.RFC3339)
	}
	group.Status.Conditions = []metav1.Condition{{
		Type: standing.Waiting, Status: metav1.ConditionTrue,
		Message: "no room" + standing.Start{Low: at[0], Middle: at[1], High: at[2]}.String(),
	}}
	return nil
}

// setPod does the settings of pods.
func setPod(p *corev1.Pod, key, value string) error {
	switch key {
	case "priority":
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return fmt.Errorf("a priority: %w", err)
		}
		p.Spec.Priority = new(int32(n))
	case "ran":
		ago, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("a duration: %w", err)
		}
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, new(metav1.NewTime(Now().Add(-ago)))
	case "protected":
		p.Spec.PriorityClassName = protected().Name
	case "never":
		p.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	case "gate":
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: value}}
	case "scheduler":
		p.Spec.SchedulerName = value
	case "owner":
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: value, Name: p.Name, Controller: new(true)},
		}
	case "over":
		p.Status.Phase = corev1.PodSucceeded
	case "leaving":
		p.DeletionTimestamp = new(metav1.NewTime(Now()))
	default:
		return fmt.Errorf("unknown setting %s", key)
	}
	return nil
}
