package integration_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/topology"
)

// betweenGangs is the time between the submissions of two gangs.
const betweenGangs = 200 * time.Millisecond

// team is a gang and the state of its controller.
type team struct {
	name  string
	size  int
	at    time.Duration
	runs  time.Duration
	tries int
	// admitted are the nodes of the members that run, by pod; broken is set when one was refused.
	admitted map[string]string
	broken   bool
	whole    time.Time
}

// goOn plays the users, who submit gangs and single pods, and the gangs' controller.
func (r *race) goOn(t *testing.T) {
	t.Helper()
	for len(r.coming) > 0 && time.Since(r.begin) > r.coming[0].at {
		g := r.coming[0]
		r.coming, r.gangs[g.name] = r.coming[1:], g
		r.group(t, g)
		r.members(t, g)
	}
	if len(r.coming) > 0 && len(r.singles) < 30 && r.random.IntN(2) == 0 {
		r.single(t)
	}
	for name, end := range r.singles {
		if !end.IsZero() && time.Now().After(end) {
			r.remove(t, name)
			delete(r.singles, name)
		}
	}
	for _, g := range r.gangs {
		switch {
		case g.broken: // as the restart of a JobSet does
			r.removeMembers(t, g)
			r.members(t, g)
		case !g.whole.IsZero() && time.Since(g.whole) > g.runs:
			r.ranTogether(t, g)
			r.removeMembers(t, g)
			r.ran++
			delete(r.gangs, g.name)
			if err := shared.Client.SchedulingV1beta1().PodGroups(r.namespace).
				Delete(t.Context(), g.name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (r *race) group(t *testing.T, g *team) {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name: g.name, Annotations: map[string]string{topology.AnnotationRequiredTopology: "clique"},
		},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(g.size)},
		}},
	}
	if _, err := shared.Client.SchedulingV1beta1().PodGroups(r.namespace).
		Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// members makes the pods of the gang's next try.
func (r *race) members(t *testing.T, g *team) {
	t.Helper()
	g.tries++
	g.admitted, g.broken, g.whole = make(map[string]string), false, time.Time{}
	for rank := range g.size {
		pod := r.pod(fmt.Sprintf("%s-try-%d-%d", g.name, g.tries, rank), ours)
		pod.Labels = map[string]string{
			"batch.kubernetes.io/job-completion-index": strconv.Itoa(
				rank,
			),
			"gang": g.name,
			"try":  strconv.Itoa(g.tries),
		}
		gangapi.Join(&pod.ObjectMeta, &pod.Spec, g.name)
		r.create(t, pod)
	}
}

func (r *race) single(t *testing.T) {
	t.Helper()
	r.made++
	pod := r.pod(fmt.Sprint("single-", r.made), stock)
	r.singles[pod.Name] = time.Time{}
	r.create(t, pod)
}

// pod asks for a whole tray.
func (r *race) pod(name, scheduler string) *corev1.Pod {
	asks := corev1.ResourceList{gpu: resource.MustParse("4"), corev1.ResourceCPU: resource.MustParse("1")}
	none := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler, TerminationGracePeriodSeconds: &none, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "main", Image: "train", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks},
			}},
		},
	}
}

func (r *race) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	_, err := shared.Client.CoreV1().Pods(r.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (r *race) remove(t *testing.T, name string) {
	t.Helper()
	err := shared.Client.CoreV1().Pods(r.namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

func (r *race) removeMembers(t *testing.T, g *team) {
	t.Helper()
	for rank := range g.size {
		r.remove(t, fmt.Sprintf("%s-try-%d-%d", g.name, g.tries, rank))
	}
}
