package gangqueue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
)

// differing describes the priorities of members without a node; "" if all have the same. kube-scheduler refuses a gang
// whose members differ in it, and its group gets none.
func differing(state fwk.PodGroupState) string {
	var found []int32
	for _, pod := range state.UnscheduledPods() {
		if priority := corev1helpers.PodPriority(pod); !slices.Contains(found, priority) {
			found = append(found, priority)
		}
	}
	if len(found) < 2 {
		return ""
	}
	slices.Sort(found)
	texts := make([]string, len(found))
	for i, priority := range found {
		texts[i] = strconv.Itoa(int(priority))
	}
	return fmt.Sprintf(
		"its members have priorities %s; let all of them have the same priority class",
		strings.Join(texts, " and "),
	)
}
