package finished_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/finished"
	"github.com/lockstep-project/lockstep/topology"
)

func gang(minCount int32, note string) *schedulingv1beta1.PodGroup {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount}
	if note != "" {
		metav1.SetMetaDataAnnotation(&group.ObjectMeta, topology.AnnotationFinished, note)
	}
	return group
}

// An informer may transform an object more than once.
func TestTransform(t *testing.T) {
	for name, test := range map[string]struct {
		group    *schedulingv1beta1.PodGroup
		sees, is int
	}{
		"no note":             {gang(4, ""), 4, 4},
		"a note":              {gang(4, "3 of 4"), 1, 4},
		"of another minCount": {gang(5, "3 of 4"), 5, 5},
		"all finished":        {gang(4, "4 of 4"), 4, 4},
		"none":                {gang(4, "0 of 4"), 4, 4},
		"too many":            {gang(4, "9 of 4"), 4, 4},
		"fewer than none":     {gang(4, "-3 of 4"), 4, 4},
		"not readable":        {gang(4, "many"), 4, 4},
	} {
		for range 3 {
			seen, err := finished.Transform(test.group)
			if err != nil {
				t.Fatal(err)
			}
			group, ok := seen.(*schedulingv1beta1.PodGroup)
			if !ok {
				t.Fatalf("it is a %T now", seen)
			}
			if sees, is := int(
				group.Spec.SchedulingPolicy.Gang.MinCount,
			), finished.MinCount(
				group,
			); sees != test.sees ||
				is != test.is {
				t.Errorf("%s: minCount %d is seen as %d, want %d as %d", name, is, sees, test.is, test.sees)
			}
			test.group = group
		}
	}
}

// pods are pods of Jobs, a letter each, such as aab; - is a pod without one.
func pods(jobs string) []*corev1.Pod {
	var out []*corev1.Pod
	for i, job := range strings.Split(jobs, "") {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(job, i)}}
		if job != "-" {
			pod.OwnerReferences = []metav1.OwnerReference{
				{Kind: "Job", Name: job, UID: types.UID(job), Controller: new(true)},
			}
		}
		out = append(out, pod)
	}
	return out
}

// counted counts pods by their owner.
func counted(owners string) map[types.UID]int {
	count := make(map[types.UID]int)
	for _, pod := range pods(owners) {
		if owner := metav1.GetControllerOf(pod); owner != nil {
			count[owner.UID]++
		}
	}
	return count
}

func TestWanted(t *testing.T) {
	for name, test := range map[string]struct {
		present, succeeded string
		want               string
	}{
		"all are there":            {"aaaa", "", ""},
		"more succeeded before":    {"aaaa", "a", ""},
		"one is made again":        {"a", "aaa", "3 of 4"},
		"one more has to come":     {"a", "aa", ""},
		"two run, one succeeded":   {"aaa", "a", "1 of 4"},
		"more than it needs":       {"aa", "aaa", "2 of 4"},
		"of the Job before":        {"bbb", "aaa", ""},
		"of one of two Jobs":       {"ab", "ab", "2 of 4"},
		"nobody is left":           {"", "aaaa", ""},
		"pods without a Job":       {"--", "--", ""},
		"a Job of its own for one": {"a", "bbb", ""},
	} {
		if got := finished.Wanted(gang(4, ""), pods(test.present), counted(test.succeeded)).String(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	seen, err := finished.Transform(gang(4, "3 of 4"))
	if err != nil {
		t.Fatal(err)
	}
	group, ok := seen.(*schedulingv1beta1.PodGroup)
	if !ok {
		t.Fatalf("it is a %T now", seen)
	}
	if got := finished.Wanted(group, pods("a"), counted("aaa")).String(); got != "3 of 4" {
		t.Errorf("a note that is right is changed to %q", got)
	}
	if got := finished.Wanted(group, pods("bbbb"), counted("aaa")).String(); got != "" {
		t.Errorf("after a restart of all the note is %q", got)
	}
}
