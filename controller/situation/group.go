package situation

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// A group without a report of any scheduler waits for one of these reasons.
const (
	// noPods is for a group without pods: no scheduler evaluates it.
	noPods = "NoPods"
	// podsRefused is for a job with pods that its namespace refuses.
	podsRefused = "PodsRefused"
	// notSeen is for a group with pods. Our scheduler, like kube-scheduler, evaluates it when the pods that have to
	// start together exist.
	notSeen        = "NotSeen"
	notSeenMessage = "the scheduler has not looked at it yet; it does once all its pods exist"
)

// groupStanding is the scheduler's report on one group.
type groupStanding struct {
	name            string
	placed          bool
	reason, message string
	// evicted is the group's condition that says so; nil if it was placed since.
	evicted *metav1.Condition
	queue   *trainerv1alpha1.QueueStatus
}

// unplacedOf returns the standings of the job's groups that have no nodes. Groups that the cache does not show yet
// count as one. placedAt is the time at which the job last had nodes.
func unplacedOf(
	groups []schedulingv1beta1.PodGroup, jobSet *jobsetv1alpha2.JobSet, placedAt metav1.Time,
) []groupStanding {
	if len(groups) == 0 && jobSet != nil && plan.IsGrouped(jobSet.Spec) {
		return []groupStanding{{reason: notSeen, message: notSeenMessage}}
	}
	var out []groupStanding
	for i := range groups {
		if s := standingOf(groups[i].Status.Conditions, placedAt); !s.placed {
			s.name = groups[i].Name
			out = append(out, s)
		}
	}
	return out
}

// waitingOf returns those of the unplaced groups that wait for nodes, or for pods that are not created. The others wait
// for another part of their job, as trainers wait until an initializer has fetched their data.
func waitingOf(unplaced []groupStanding, jobSet *jobsetv1alpha2.JobSet) []groupStanding {
	var out []groupStanding
	for _, s := range unplaced {
		if jobSet != nil {
			missing := podlessOf(jobSet, s.name)
			switch {
			case missing == nil:
			case missing.behind:
				continue
			case s.reason == notSeen:
				s.reason, s.message = noPods, missing.message(jobSet)
			}
		}
		out = append(out, s)
	}
	return out
}

// lastOf returns the waiting group at the last position of the queue, on which the start of its job depends; of groups
// without a position, the first one.
func lastOf(waiting []groupStanding) groupStanding {
	return slices.MaxFunc(waiting, func(a, b groupStanding) int { return cmp.Compare(a.position(), b.position()) })
}

// position is the group's place in the queue; 0 if it has none.
func (s groupStanding) position() int32 {
	if s.queue == nil {
		return 0
	}
	return s.queue.Position
}

// standingOf reads the conditions of a group. Any scheduler reports that it was placed once; ours reports more. An
// eviction before placedAt has passed: our scheduler resets that condition when it places the group again, and others
// leave it.
func standingOf(conditions []metav1.Condition, placedAt metav1.Time) groupStanding {
	out := groupStanding{evicted: holding(conditions, schedulingv1beta1.DisruptionTarget)}
	if out.evicted != nil && out.evicted.LastTransitionTime.Before(&placedAt) {
		out.evicted = nil
	}
	waits := holding(conditions, standing.Waiting)
	scheduled := meta.FindStatusCondition(conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	switch {
	case waits != nil:
		out.reason, out.message = waits.Reason, waits.Message
	case out.evicted != nil:
		out.reason, out.message = out.evicted.Reason, out.evicted.Message
	case holding(conditions, standing.Placed) != nil, scheduled != nil && scheduled.Status == metav1.ConditionTrue:
		return groupStanding{placed: true}
	case scheduled != nil && !strings.Contains(scheduled.Message, standing.Waiting): // otherwise our condition will follow
		out.reason, out.message = scheduled.Reason, scheduled.Message
	default:
		out.reason, out.message = notSeen, notSeenMessage
	}
	if turn := holding(conditions, standing.Queued); turn != nil {
		out.queue = queueOf(turn.Message)
	}
	return out
}

func holding(conditions []metav1.Condition, kind string) *metav1.Condition {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}

// queueOf reads where a group stands; nil if another version of the scheduler words it differently.
func queueOf(text string) *trainerv1alpha1.QueueStatus {
	turn, err := standing.ParseTurn(text)
	if err != nil {
		return nil
	}
	out := &trainerv1alpha1.QueueStatus{Position: int32(min(turn.Position, 1<<31-1)), Reservation: turn.Reserved}
	if start, err := time.Parse(time.RFC3339, turn.Start); err == nil {
		at := metav1.NewTime(start)
		out.ExpectedStart = &at
	}
	return out
}

// placementOf returns the place of groups that all have their nodes, and its text; nil if our scheduler has not
// reported it for one of them.
func placementOf(groups []schedulingv1beta1.PodGroup) (*trainerv1alpha1.Placement, string) {
	var out *trainerv1alpha1.Placement
	var domains, texts []string
	for i := range groups {
		condition := holding(groups[i].Status.Conditions, standing.Placed)
		if condition == nil {
			return nil, ""
		}
		place, err := standing.ParsePlace(condition.Message)
		if err != nil {
			return nil, ""
		}
		if out == nil {
			out = &trainerv1alpha1.Placement{}
		}
		out.Nodes += int32(min(place.Nodes, 1<<20))
		if place.Domain != "" && !slices.Contains(domains, place.Domain) {
			domains = append(domains, place.Domain)
		}
		if place.Nodes > 0 {
			out.Quality = worseOf(out.Quality, strconv.FormatFloat(place.Quality, 'f', 2, 64))
		}
		if since := condition.LastTransitionTime; out.Since == nil || out.Since.Before(&since) {
			out.Since = &since
		}
		texts = append(texts, condition.Message)
	}
	if out != nil {
		out.Domain = cut(strings.Join(domains, ", "))
	}
	return out, strings.Join(texts, "; ")
}
