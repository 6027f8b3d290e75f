package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-project/lockstep/controller/sizing"
	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/grid"
)

// The objects on which annotations are read.
const (
	onTrainJob = "TrainJob"
	onRuntime  = "runtime"
	onPods     = "pod template"
	onPodGroup = "PodGroup"
	onPod      = "pod"
	onClass    = "PriorityClass"
)

// The values of the gang annotation.
const (
	gangOn  = "on"
	gangOff = "off"
)

// The values of the annotation for automatic resources.
const (
	autoOn  = "true"
	autoOff = "false"
)

const (
	// systemPrefix begins the names of the classes that Kubernetes reserves for its own components.
	systemPrefix = "system-"
	// OwnPriorityClass is the class that the chart creates for Lockstep's own pods. A gang of that class would preempt
	// all others.
	OwnPriorityClass = "lockstep"
)

// Annotation is one line of the table of Lockstep's annotations. Documentation, admission and rendering all use it.
type Annotation struct {
	// Key is the annotation's name.
	Key string
	// On lists the objects on which it is read, the one that wins first.
	On []string
	// Values describes the permitted values, in words that finish "must be".
	Values string
	// Meaning is one sentence.
	Meaning string
	// Controller is set if only Lockstep writes it, not users.
	Controller bool

	check func(value string) bool
	// wish is set if the scheduler reads it on the PodGroup; hard, that a job must not start where it is not served.
	wish, hard bool
	// derived is set if a plan writes its own value on the PodGroup.
	derived bool
}

// Fault returns the fault of a value; empty for a valid one.
func (a Annotation) Fault(value string) string {
	if a.check == nil || a.check(value) {
		return ""
	}
	return "must be " + a.Values
}

// Annotations is the table.
func Annotations() []Annotation {
	return slices.Concat(
		placeAnnotations(),
		shapeAnnotations(),
		elasticAnnotations(),
		switchAnnotations(),
		failureAnnotations(),
		sweepAnnotations(),
		queueAnnotations(),
		ownAnnotations(),
	)
}

// placeAnnotations restrict the places of a gang.
func placeAnnotations() []Annotation {
	return []Annotation{
		level(topology.AnnotationRequiredTopology, "The whole gang is placed inside one domain of this level.").must(),
		level(
			topology.AnnotationPreferredTopology,
			"The gang is placed inside one domain of this level if one has room.",
		),
		integer(topology.AnnotationSegmentSize, 1,
			"Consecutive ranks in groups of this many are each placed inside one domain of the segment level.").must(),
		level(topology.AnnotationSegmentTopology, "The level of segments."),
		words(
			topology.AnnotationSegmentEqual,
			"A last segment that is short is not allowed.",
			"true",
			"false",
		).asWish(),
		level(topology.AnnotationSpreadTopology, "The level over which segments, or members without them, are spread."),
		integer(topology.AnnotationSpreadMax, 1,
			"One domain of the spread level holds at most this many segments, or members without them.").must(),
	}
}

// shapeAnnotations set the layout of a gang in its place.
func shapeAnnotations() []Annotation {
	return []Annotation{
		integer(
			topology.AnnotationSpares,
			0,
			"This many nodes are left unused in each domain of the segment, required or preferred level, whichever comes first.",
		).must(),
		integer(topology.AnnotationMaxPerNode, 1, "A node holds at most this many members of the gang.").must(),
		Annotation{
			Key:    topology.AnnotationTorusBox,
			Values: "two or three numbers joined by x, such as 2x4x4",
			Meaning: "The gang fills a box of so many nodes along the axes of one torus, in any orientation; nodes say their torus by the label " +
				topology.LabelTorus + ".",
			check: func(value string) bool {
				_, err := grid.ParseSize(value)
				return err == nil
			},
		}.must(),
		words(topology.AnnotationCommunication, "Who talks to whom: what a placement costs is computed for it.",
			"ring", "chain", "all-to-all").asWish(),
	}
}

// elasticAnnotations bound the number of nodes with which a job may train.
func elasticAnnotations() []Annotation {
	bound := func(key, meaning string) Annotation {
		line := integer(key, 1, meaning)
		line.On, line.derived = []string{onTrainJob, onRuntime, onPodGroup}, true
		return line
	}
	return []Annotation{
		bound(
			topology.AnnotationMinNodes,
			"The job is elastic: it starts with as many nodes as there are, from this many on, goes on with fewer when a job of a higher "+
				"priority needs some, and takes more when none waits for them. For torch only. Default: numNodes if there is a "+
				topology.AnnotationMaxNodes+".",
		),
		bound(topology.AnnotationMaxNodes,
			"The job is elastic, and trains with this many nodes at most. Default: numNodes if there is a "+
				topology.AnnotationMinNodes+"."),
	}
}

// switchAnnotations select the scheduling of a job.
func switchAnnotations() []Annotation {
	return []Annotation{
		words(
			topology.AnnotationGang,
			"The job's ranks start together or not at all. What a job does not say, its runtime's scheduling says, else the "+
				"controller's --gang-default.",
			gangOn,
			gangOff,
		),
		{
			Key:    topology.AnnotationScheduler,
			On:     []string{onTrainJob, onRuntime},
			Values: "lockstep, native or the name of a scheduler",
			Meaning: "Who places the gang: Lockstep's scheduler, the stock scheduler by the same PodGroup, or another. " +
				"A schedulerName in the runtime's pods is never overwritten.",
			check: func(value string) bool { return len(validation.IsDNS1123Subdomain(value)) == 0 },
		},
		{
			Key: topology.AnnotationPriorityClass,
			On:  []string{onTrainJob, onRuntime},
			Values: "the name of a PriorityClass that is not " + OwnPriorityClass + " and does not start with " +
				systemPrefix,
			Meaning: "The PriorityClass of the job's pods and of its PodGroups, instead of those that the runtime's pods have. It must exist, " +
				"and ResourceQuotas of the namespace say who may use how much of it. Kueue goes by its own label.",
			check: func(value string) bool {
				return len(validation.IsDNS1123Subdomain(value)) == 0 && value != OwnPriorityClass &&
					!strings.HasPrefix(value, systemPrefix)
			},
		},
		words(
			topology.AnnotationOnDisruption,
			"What happens to a gang with an evicted member: all start again, which does not count as a failure "+
				"of the job's, or the member alone is replaced. Policies of the runtime's own are kept.",
			disruptionRestart,
			disruptionReplace,
		),
		words(
			topology.AnnotationMNNVL,
			"Pods with GPUs train by NVLink across nodes, by a ComputeDomain of the job's: one pod on a node, the gang or each of its "+
				"segments inside one clique (required; refused where that cannot be), or inside one if it has room (preferred).",
			mnnvlRequired,
			mnnvlPreferred,
			mnnvlNone,
		),
		words(
			topology.AnnotationAutoResources,
			"The number of nodes and of their GPUs is chosen when the job is created, by the memory that it needs and what the nodes have. "+
				"What the job says of GPUs stays. A job for which it cannot be known is refused.",
			autoOn,
			autoOff,
		),
		{
			Key: topology.AnnotationModel,
			On:  []string{onTrainJob, onRuntime},
			Values: "parameters=NUMBER (such as 8B), and if need be method, precision, optimizer, sharding, activations, batch, sequence and rank, " +
				"each as key=value, separated by commas",
			Meaning: "What is trained, for " + topology.AnnotationAutoResources + ". torchtune's runtimes know it.",
			check: func(value string) bool {
				_, err := sizing.Parse(value)
				return err == nil
			},
		},
	}
}

// failureAnnotations set the reaction to a failed start or rank of a gang.
func failureAnnotations() []Annotation {
	return []Annotation{
		{
			Key:    topology.AnnotationMaxRestarts,
			On:     []string{onTrainJob, onRuntime},
			Values: "an integer of at least 0",
			Meaning: fmt.Sprintf(
				"When a rank fails, all ranks start again together, this many times; then the job fails. "+
					"Default: maxRestarts of the runtime's failurePolicy, or backoffLimit of its Jobs, or %d. With "+
					topology.AnnotationOnDisruption+": replace the rank starts again alone, and failures of all "+
					"ranks are counted. Evictions and deleted pods are not counted. "+
					"Without effect beside policies of the runtime's own, which an Event says.",
				defaultMaxRestarts,
			),
			check: atLeast(0),
		},
		Annotation{
			Key:    topology.AnnotationExitCodes,
			Values: "code=action or first-last=action, separated by commas; codes from 1 to 255 or *, actions retry, fatal, other-node",
			Meaning: "What the exit code of a failed rank means: all start again (retry, the default for all codes), again and not on that node for an hour " +
				"(other-node), or the job fails (fatal; without effect beside policies of the runtime's own). * is all codes that are not named.",
			check: func(value string) bool {
				_, err := topology.ParseExitCodes(value)
				return err == nil
			},
		}.asWish(),
		Annotation{
			Key:     topology.AnnotationStartPatience,
			Values:  "an integer with the unit s, m or h, from 1s to 24h",
			Meaning: "A start of the gang ends, and is tried again, when no member has got further for this long; else the scheduler's own limits hold.",
			check: func(value string) bool {
				_, err := topology.ParsePatience(value)
				return err == nil
			},
		}.asWish(),
	}
}

// queueAnnotations are for administrators of the queue, on objects that are not ours.
func queueAnnotations() []Annotation {
	return []Annotation{
		{
			Key:     topology.AnnotationReservation,
			On:      []string{onPodGroup},
			Values:  topology.NoReservation,
			Meaning: "The gang's reservation is revoked, and it gets no other.",
		},
		{
			Key:     topology.AnnotationPreemptible,
			On:      []string{onClass},
			Values:  "false",
			Meaning: "Pods of this class are not preempted, whatever their priority.",
		},
	}
}

// ownAnnotations are written by Lockstep only.
func ownAnnotations() []Annotation {
	return []Annotation{
		{
			Key:        topology.AnnotationLateMembers,
			On:         []string{onPodGroup},
			Controller: true,
			Values:     "a JSON list",
			Meaning:    "Pod templates of members that come when the others run (an MPI launcher): places are held for them.",
		},
		{
			Key:        topology.AnnotationQueuedAt,
			On:         []string{onPodGroup},
			Controller: true,
			Values:     "an instant (RFC 3339)",
			Meaning:    "Since when the job of the gang waits.",
		},
		{
			Key:        topology.AnnotationJobQueuedAt,
			On:         []string{onTrainJob},
			Controller: true,
			Values:     "an instant (RFC 3339)",
			Meaning: "Since when the job waits, if not since its creation: since it was resumed, or since its label " +
				KueueQueueLabel + " changed while it was suspended. A job with that label that a controller (Kueue) resumes has been " +
				"waiting all the time.",
		},
		{
			Key:        topology.AnnotationExpectedEnd,
			On:         []string{onPodGroup},
			Controller: true,
			Values:     "an instant (RFC 3339)",
			Meaning:    "When the job ends: its deadline, or what its trainer reports if that is earlier. Others may start before.",
		},
		{
			Key:        topology.AnnotationLastCheckpoint,
			On:         []string{onPodGroup},
			Controller: true,
			Values:     "an instant (RFC 3339)",
			Meaning: "When the trainer last saved its work, as it reports by the metric " + MetricCheckpoint +
				": a preemption loses what came after.",
		},
		{
			Key:        topology.AnnotationFinished,
			On:         []string{onPodGroup},
			Controller: true,
			Values:     "a number of members, such as 3 of 4",
			Meaning: "So many of the members that a gang needs have succeeded, and its Job makes none in their place: the others start again without them. " +
				"The scheduler writes it when others wait.",
		},
		{
			Key:        topology.AnnotationCheckpointDeadline,
			On:         []string{onPod},
			Controller: true,
			Values:     "an instant (RFC 3339)",
			Meaning:    "Until when a pod that is preempted has time to save its work. The scheduler writes it before it ends the pod.",
		},
	}
}

// Hard wishes and soft ones are wishes: they are copied to the PodGroup, and pod templates may have them too.
func (a Annotation) asWish() Annotation {
	a.wish, a.On = true, []string{onTrainJob, onPods, onRuntime, onPodGroup}
	return a
}

func (a Annotation) must() Annotation {
	a = a.asWish()
	a.hard = true
	return a
}

func level(key, meaning string) Annotation {
	return Annotation{
		Key: key, Values: "the name of a level or the key of a node label", Meaning: meaning,
		check: func(value string) bool { return len(validation.IsQualifiedName(value)) == 0 },
	}.asWish()
}

func integer(key string, least int64, meaning string) Annotation {
	return Annotation{
		Key: key, Values: fmt.Sprintf("an integer of at least %d", least), Meaning: meaning,
		check: atLeast(least),
	}
}

// atLeast checks integers of 32 bits.
func atLeast(least int64) func(value string) bool {
	return func(value string) bool {
		number, err := strconv.ParseInt(value, 10, 32)
		return err == nil && number >= least
	}
}

func words(key, meaning string, values ...string) Annotation {
	return Annotation{
		Key: key, On: []string{onTrainJob, onRuntime}, Values: "one of " + strings.Join(values, ", "), Meaning: meaning,
		check: func(value string) bool { return slices.Contains(values, value) },
	}
}

// annotation is the table's line of that key.
func annotation(key string) (Annotation, bool) {
	for _, line := range Annotations() {
		if line.Key == key {
			return line, true
		}
	}
	return Annotation{}, false
}

// IsWish reports whether an annotation is a user's wish that a plan copies to PodGroups.
func IsWish(key string) bool {
	line, ok := annotation(key)
	return ok && line.wish
}

// IsPlanned reports whether a PodGroup's annotation is one that plans write.
func IsPlanned(key string) bool {
	line, ok := annotation(key)
	return ok && (line.wish || line.derived || line.Controller)
}
