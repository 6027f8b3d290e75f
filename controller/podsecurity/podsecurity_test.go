package podsecurity_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/podsecurity"
)

// jobSet has an initializer that every level admits, trainers without a security context, and a launcher on the network
// of its node.
func jobSet() *jobsetv1alpha2.JobSet {
	set := &jobsetv1alpha2.JobSet{}
	for _, name := range []string{"dataset-initializer", "node", "launcher"} {
		job := jobsetv1alpha2.ReplicatedJob{Name: name}
		job.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: name}}
		set.Spec.ReplicatedJobs = append(set.Spec.ReplicatedJobs, job)
	}
	careful := &set.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	careful.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	careful.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	set.Spec.ReplicatedJobs[2].Template.Spec.Template.Spec.HostNetwork = true
	return set
}

// The enforced level of a namespace refuses the pods that break it, and a label that cannot be parsed counts as
// restricted.
func TestLevels_Refused(t *testing.T) {
	for level, want := range map[string][]string{
		"":           nil,
		"privileged": nil,
		"baseline":   {"launcher"},
		"restricted": {"launcher", "node"},
		"strict":     {"launcher", "node"},
	} {
		got := refused(
			t,
			map[string]string{
				"pod-security.kubernetes.io/enforce": level,
				"pod-security.kubernetes.io/warn":    "restricted",
			},
		)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("level %q refuses %v, want %v", level, names, want)
		}
	}
}

// The reason names the namespace, the level, and the fields that the pods must set.
func TestLevels_Reason(t *testing.T) {
	got := refused(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})["node"]
	for _, part := range []string{
		"namespace team enforces Pod Security restricted, which refuses the pods of node: ",
		`allowPrivilegeEscalation != false (container "node" must set securityContext.allowPrivilegeEscalation=false)`,
		"runAsNonRoot != true",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%q does not say %q", got, part)
		}
	}
}

// For a namespace that cannot be read, and without a reader, there is no refusal.
func TestLevels_Unknown(t *testing.T) {
	if got := (podsecurity.Levels{}).Refused(t.Context(), "team", jobSet()); len(got) > 0 {
		t.Errorf("without a reader: %v", got)
	}
	levels, err := podsecurity.New(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if got := levels.Refused(t.Context(), "team", jobSet()); len(got) > 0 {
		t.Errorf("without the namespace: %v", got)
	}
}

// A level is cached for ten seconds: many jobs arrive at once.
func TestLevels_Recent(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "team", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	reads := 0
	client := fake.NewClientBuilder().
		WithScheme(scheme(t)).
		WithObjects(namespace).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				reads++
				return c.Get(ctx, key, o, opts...)
			},
		}).
		Build()
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC))
	levels, err := podsecurity.New(client, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		reads int
	}{{0, 1}, {9 * time.Second, 1}, {time.Second, 2}} {
		now.SetTime(now.Now().Add(step.after))
		if got := levels.Refused(t.Context(), "team", jobSet()); len(got) != 2 || reads != step.reads {
			t.Errorf("%s later %d are refused by %d reads, want 2 by %d", step.after, len(got), reads, step.reads)
		}
	}
}

// refused asks about a namespace with these labels; those without a value are left out.
func refused(t *testing.T, labels map[string]string) map[string]string {
	t.Helper()
	return refusedOf(t, labels, jobSet())
}

func refusedOf(t *testing.T, labels map[string]string, set *jobsetv1alpha2.JobSet) map[string]string {
	t.Helper()
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: labels}}
	levels, err := podsecurity.New(
		fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(namespace).Build(),
		clock.RealClock{},
	)
	if err != nil {
		t.Fatal(err)
	}
	return levels.Refused(t.Context(), "team", set)
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	out := runtime.NewScheme()
	if err := corev1.AddToScheme(out); err != nil {
		t.Fatal(err)
	}
	return out
}
