package ownership_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/controller/ownership"
)

// Each case spoils one part of a true claim. Nothing but the whole of it counts.
func TestControls_OnlyTheWholeTruth(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"}
	owner := &metav1.ObjectMeta{Namespace: "team-a", Name: "train", UID: "uid-1"}
	for name, c := range map[string]struct {
		spoil    func(*corev1.ConfigMap)
		controls bool
	}{
		"the truth":            {func(*corev1.ConfigMap) {}, true},
		"no owner":             {func(c *corev1.ConfigMap) { c.OwnerReferences = nil }, false},
		"not its controller":   {func(c *corev1.ConfigMap) { c.OwnerReferences[0].Controller = nil }, false},
		"another UID":          {func(c *corev1.ConfigMap) { c.OwnerReferences[0].UID = "uid-2" }, false},
		"another name":         {func(c *corev1.ConfigMap) { c.OwnerReferences[0].Name = "other" }, false},
		"another kind":         {func(c *corev1.ConfigMap) { c.OwnerReferences[0].Kind = "Nothing" }, false},
		"the kind in lower":    {func(c *corev1.ConfigMap) { c.OwnerReferences[0].Kind = "trainjob" }, false},
		"another group":        {func(c *corev1.ConfigMap) { c.OwnerReferences[0].APIVersion = "evil.example/v1alpha1" }, false},
		"a version of no one":  {func(c *corev1.ConfigMap) { c.OwnerReferences[0].APIVersion = "trainer.kubeflow.org/v9" }, false},
		"in another namespace": {func(c *corev1.ConfigMap) { c.Namespace = "team-b" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
			}}
			c.spoil(object)
			if got := ownership.Controls(owner, kind, object); got != c.controls {
				t.Errorf("controls %t, want %t", got, c.controls)
			}
		})
	}
	nameless := &metav1.ObjectMeta{}
	if ownership.Controls(nameless, kind, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(nameless, kind)},
	}}) {
		t.Error("an owner without a UID owns what names none")
	}
}
