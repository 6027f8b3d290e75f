package snapshot_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// A tenant may ask for amounts that do not fit in 64 bits. A negative demand of one running pod would stop every
// preemption.
func TestAmountOf_DoesNotWrap(t *testing.T) {
	const most = 1 << 52
	for text, want := range map[string]struct{ cpu, other int64 }{
		"0":                    {0, 0},
		"500m":                 {500, 1},
		"96":                   {96_000, 96},
		"18446744073709551":    {most, most}, // -616 thousandths in 64 bits
		"9223372036854776":     {most, most},
		"9223372036854775807":  {most, most},
		"99999999999999999999": {most, most},
		"1e30":                 {most, most},
	} {
		quantity := resource.MustParse(text)
		if got := snapshot.AmountOf(corev1.ResourceCPU, quantity); got != want.cpu {
			t.Errorf("%s processors are %d thousandths, want %d", text, got, want.cpu)
		}
		if got := snapshot.AmountOf(corev1.ResourceMemory, quantity); got != want.other {
			t.Errorf("%s bytes are %d, want %d", text, got, want.other)
		}
	}
	storage := func(text string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceEphemeralStorage: resource.MustParse(text), "nvidia.com/gpu": resource.MustParse(text),
		}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{storage("9223372036854775807"), storage("4611686018427387904")},
	}}
	if got := snapshot.Takes(pod)[corev1.ResourceEphemeralStorage]; got != most {
		t.Errorf("two containers take %d bytes, want %d", got, int64(most))
	}
	if got := snapshot.Accelerators([]*corev1.Pod{pod, pod}, []corev1.ResourceName{"nvidia.com/gpu"}); got != most {
		t.Errorf("two pods ask for %d accelerators, want %d", got, int64(most))
	}
}
