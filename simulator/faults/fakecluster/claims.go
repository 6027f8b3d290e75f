package fakecluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
)

// claimLag is the delay of the controller of ResourceClaims.
const claimLag = 50 * time.Millisecond

// claims is the controller of ResourceClaims: it makes those that pods ask for by a template, and takes back unused
// ones.
type claims struct {
	World

	due bool
}

func (c *claims) changed(e apiserver.Event) {
	if e.Kind != "Pod" && e.Kind != "ResourceClaim" && e.Kind != "ResourceClaimTemplate" || c.due {
		return
	}
	c.due = true
	c.After(c.Delay(claimLag, "claims"), func() {
		c.due = false
		c.sync()
	})
}

func (c *claims) sync() {
	using := make(map[types.UID]bool)
	for _, o := range c.Server.List("Pod", "") {
		pod, ok := o.(*corev1.Pod)
		if !ok || snapshot.Ended(pod) {
			continue
		}
		using[pod.UID] = true
		if pod.DeletionTimestamp == nil {
			c.make(pod)
		}
		if pod.Spec.NodeName != "" {
			c.reserve(pod)
		}
	}
	for _, o := range c.Server.List("ResourceClaim", "") {
		if claim, ok := o.(*resourcev1.ResourceClaim); ok {
			c.release(claim, using)
		}
	}
}

// make makes the claims of a pod that it has none for.
func (c *claims) make(pod *corev1.Pod) {
	var missing []corev1.PodResourceClaimStatus
	for _, asked := range pod.Spec.ResourceClaims {
		there := func(s corev1.PodResourceClaimStatus) bool { return s.Name == asked.Name }
		if asked.ResourceClaimTemplateName == nil || slices.ContainsFunc(pod.Status.ResourceClaimStatuses, there) {
			continue
		}
		found, err := c.Server.Get(
			"ResourceClaimTemplate",
			types.NamespacedName{Namespace: pod.Namespace, Name: *asked.ResourceClaimTemplateName},
		)
		template, ok := found.(*resourcev1.ResourceClaimTemplate)
		if err != nil || !ok {
			continue
		}
		made, err := c.Server.Create(&resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: pod.Namespace, GenerateName: pod.Name + "-" + asked.Name + "-",
				OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod")),
				},
			},
			Spec: *template.Spec.Spec.DeepCopy(),
		})
		must(err)
		missing = append(
			missing,
			corev1.PodResourceClaimStatus{Name: asked.Name, ResourceClaimName: new(made.GetName())},
		)
	}
	if len(missing) == 0 {
		return
	}
	next := pod.DeepCopy()
	next.Status.ResourceClaimStatuses = append(next.Status.ResourceClaimStatuses, missing...)
	_, err := c.Server.Update(next, "status")
	must(err)
}

// reserve gives a pod that has a node the claims that were allocated for it, if its scheduler has not.
func (c *claims) reserve(pod *corev1.Pod) {
	for _, of := range pod.Status.ResourceClaimStatuses {
		found, err := c.Server.Get(
			"ResourceClaim",
			types.NamespacedName{Namespace: pod.Namespace, Name: *of.ResourceClaimName},
		)
		claim, ok := found.(*resourcev1.ResourceClaim)
		if err != nil || !ok || claim.Status.Allocation == nil || len(claim.Status.ReservedFor) > 0 {
			continue
		}
		next := claim.DeepCopy()
		next.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{
			{Resource: "pods", Name: pod.Name, UID: pod.UID},
		}
		_, err = c.Server.Update(next, "status")
		must(err)
	}
}

// release removes pods that no longer use a claim from it, and frees its devices with the last one. A claim that was
// made for such a pod is deleted.
func (c *claims) release(claim *resourcev1.ResourceClaim, using map[types.UID]bool) {
	next := claim.DeepCopy()
	next.Status.ReservedFor = slices.DeleteFunc(
		next.Status.ReservedFor,
		func(by resourcev1.ResourceClaimConsumerReference) bool {
			return !using[by.UID]
		},
	)
	fewer := len(next.Status.ReservedFor) < len(claim.Status.ReservedFor)
	if fewer || claim.DeletionTimestamp != nil && claim.Status.Allocation != nil {
		if len(next.Status.ReservedFor) == 0 {
			next.Status.Allocation = nil
		}
		_, err := c.Server.Update(next, "status")
		must(err)
	}
	owner := metav1.GetControllerOf(claim)
	name := client.ObjectKeyFromObject(claim)
	if claim.DeletionTimestamp == nil && owner != nil && !using[owner.UID] {
		must(c.Server.Delete("ResourceClaim", name, metav1.DeleteOptions{}))
	}
	found, err := c.Server.Get("ResourceClaim", name)
	if now, ok := found.(*resourcev1.ResourceClaim); err == nil && ok && now.Status.Allocation == nil &&
		now.DeletionTimestamp != nil {
		last := now.DeepCopy()
		last.Finalizers = slices.DeleteFunc(last.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
		_, err := c.Server.Update(last, "")
		must(err)
	}
}
