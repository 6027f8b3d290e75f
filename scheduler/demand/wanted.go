// Package demand reports gangs that wait for nodes to node autoscalers: one ProvisioningRequest for each gang, in place
// of one unschedulable pod for each member. It decides no more than that: the waiting gangs and their needs are read
// from the PodGroup's conditions and from the members.
package demand

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// mostSets is the number of kinds of pods that a ProvisioningRequest can have.
const mostSets = 32

// Request is a gang's demand on node autoscalers.
type Request struct {
	// Name is that of the ProvisioningRequest. It changes with the content, which is immutable in the API server: an
	// object of that name needs no update.
	Name  string
	Class string
	// Sets are the kinds of members, by their first rank.
	Sets []Set
}

// Set is a number of equal members.
type Set struct {
	Count    int32
	Template corev1.PodTemplateSpec
}

// Members returns the number of members that the request is for.
func (r Request) Members() int {
	sum := 0
	for _, set := range r.Sets {
		sum += int(set.Count)
	}
	return sum
}

// Wanted returns the request of a gang with these members; false for a gang that asks for no nodes. The request has all
// members that the gang lacks, not only those that are more than fit: cluster-autoscaler subtracts the free capacity
// itself.
func Wanted(group *schedulingv1beta1.PodGroup, members []*corev1.Pod, class string) (Request, bool) {
	if group.DeletionTimestamp != nil || !lacksRoom(group) {
		return Request{}, false
	}
	lacking := lacking(group, members)
	if len(lacking) == 0 || slices.ContainsFunc(lacking, unanswerable) {
		return Request{}, false
	}
	request := Request{Class: class}
	for _, pod := range lacking {
		request.Sets = counted(request.Sets, TemplateOf(pod))
	}
	if len(request.Sets) > mostSets {
		return Request{}, false
	}
	request.Name = nameOf(group, request)
	return request, true
}

// lacksRoom reports whether the scheduler found no room for the gang. A wait that nodes cannot end (a request that
// cannot be read, a volume, members that do not exist) has other reasons.
func lacksRoom(group *schedulingv1beta1.PodGroup) bool {
	if group.Spec.SchedulingPolicy.Gang == nil {
		return false
	}
	waits := meta.FindStatusCondition(group.Status.Conditions, explanation.Condition)
	return waits != nil && waits.Status == metav1.ConditionTrue && waits.Reason == explanation.NoRoom &&
		waits.Message != explanation.NotAsked
}

// lacking returns the members that the gang needs and that have no node, in rank order: of an elastic gang the first
// that are enough, and late members, which the gang cannot start without room for.
func lacking(group *schedulingv1beta1.PodGroup, members []*corev1.Pod) []*corev1.Pod {
	var waiting []*corev1.Pod
	running := 0
	for _, pod := range members {
		switch {
		case pod.DeletionTimestamp != nil:
		case pod.Spec.NodeName != "":
			running++
		default:
			waiting = append(waiting, pod)
		}
	}
	needed := int(group.Spec.SchedulingPolicy.Gang.MinCount) - running
	if needed <= 0 || needed > len(waiting) {
		return nil
	}
	late, err := snapshot.Late(group, members)
	if err != nil {
		return nil
	}
	return slices.Concat(snapshot.InRankOrder(waiting)[:needed], late)
}

// unanswerable reports whether no autoscaler can answer for a member: its claims do not exist on nodes that do not
// exist, or another controller, such as Kueue, has a ProvisioningRequest for it.
func unanswerable(pod *corev1.Pod) bool {
	for _, key := range []string{
		"autoscaling.x-k8s.io/consume-provisioning-request", "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
	} {
		if _, consumes := pod.Annotations[key]; consumes {
			return true
		}
	}
	return len(pod.Spec.ResourceClaims) > 0
}

// counted returns the sets with one more member.
func counted(sets []Set, template corev1.PodTemplateSpec) []Set {
	for i := range sets {
		if apiequality.Semantic.DeepEqual(sets[i].Template, template) {
			sets[i].Count++
			return sets
		}
	}
	return append(sets, Set{Count: 1, Template: template})
}

// longestName leaves room for a digest and the number of a set in the 253 characters of a name.
const longestName = 230

// nameOf returns a name that is different for each content, and for each life of a PodGroup.
func nameOf(group *schedulingv1beta1.PodGroup, request Request) string {
	content, err := json.Marshal(struct {
		UID     types.UID
		Request Request
	}{group.UID, request})
	if err != nil {
		return ""
	}
	digest := sha256.Sum256(content)
	name := group.Name
	if len(name) > longestName {
		name = name[:longestName]
	}
	return name + "-" + hex.EncodeToString(digest[:5])
}
