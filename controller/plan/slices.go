package plan

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// tpuResource is the extended resource of TPU chips.
	tpuResource corev1.ResourceName = "google.com/tpu"
	// computeClass is the node selector of GKE's ComputeClasses, which state the shape of the node pools that it
	// creates.
	computeClass = "cloud.google.com/compute-class"
	// tpuBlock is the level whose domains hold all cubes that optical switches can join.
	tpuBlock = "cloud.google.com/gce-topology-block"
)

// tpuSlice is the TPU slice that each Job of the trainer's is to have.
type tpuSlice struct {
	// shape is zero where only the node pools know it.
	shape topology.TPUShape
	// hosts is the number of pods on a slice: its chips by those of a pod.
	hosts int32
	// level is the key of the level of the slice's domains, units their number: one, or several cubes.
	level string
	units int32
}

// slicesOf returns the number of Jobs over which a trainer's nodes are divided: the runtime's number if its framework
// can train so, else one. The webhooks, where they are not bypassed, refuse such a runtime.
func (d *draft) slicesOf(replicas int32) int32 {
	if _, ok := d.framework.(framework.Sliced); ok {
		return max(1, replicas)
	}
	return 1
}

// chipsOf is the number of TPU chips that a pod asks for.
func chipsOf(pod corev1.PodSpec) int64 {
	chips := int64(0)
	for _, container := range pod.Containers {
		quantity, ok := container.Resources.Limits[tpuResource]
		if !ok {
			quantity = container.Resources.Requests[tpuResource]
		}
		chips += quantity.Value()
	}
	return chips
}

// tpuSlice returns the slice that the trainer's pods ask for: a dynamic one by annotation, else by node selector a node
// pool that is one slice. A ComputeClass or several slices without a shape get node pools as large as their Jobs. It is
// nil for other pods, and for slices of one host, which need no placement. The fault names a shape that no slice has.
func (d *draft) tpuSlice() (*tpuSlice, *field.Error) {
	first := d.firstTrainer()
	if first < 0 {
		return nil, nil
	}
	template := d.spec.ReplicatedJobs[first].Template.Spec.Template
	text, dynamic := template.Annotations[topology.AnnotationTPUTopology]
	if !dynamic {
		text = template.Spec.NodeSelector[topology.LabelTPUTopology]
	}
	chips := chipsOf(template.Spec)
	switch hosts := d.input.Nodes / d.input.Slices; {
	case chips == 0:
		return nil, nil
	case text != "":
	case hosts > 1 && (d.input.Slices > 1 || template.Spec.NodeSelector[computeClass] != ""):
		return &tpuSlice{hosts: hosts, level: topology.StaticTPULevel, units: 1}, nil
	default:
		return nil, nil
	}
	fault := func(reason string) (*tpuSlice, *field.Error) {
		return nil, field.Invalid(
			runtimePath(),
			text,
			"the TPU topology of replicated job "+d.spec.ReplicatedJobs[first].Name+" "+reason,
		)
	}
	shape, err := topology.ParseTPUShape(text)
	if err != nil {
		return fault("is none: want two or three numbers joined by x, such as 4x4x8")
	}
	slice := &tpuSlice{shape: shape, level: topology.StaticTPULevel, units: 1}
	total := int64(shape.Chips())
	if total <= chips {
		return nil, nil
	}
	if total%chips != 0 {
		return fault(fmt.Sprintf("has %d chips, which pods of %d chips do not fill", total, chips))
	}
	slice.hosts = int32(total / chips) //nolint:gosec // a shape is bounded
	if dynamic {
		key, units, ok := shape.Units()
		if !ok {
			return fault(
				"is no dynamic slice: want a partition such as 2x2x4 or whole cubes such as 4x4x8, no extent smaller than the one before it",
			)
		}
		slice.level, slice.units = key, int32(units) //nolint:gosec // a shape is bounded
	}
	return slice, nil
}

// wishSlice places each Job on a TPU slice of its own. Placement annotations of the job or its runtime take precedence.
func (d *draft) wishSlice(g *gang, members []member) {
	if d.slice == nil || d.scheduler() != lockstepScheduler || len(members) != 1 || d.trainers() != members[0].name ||
		d.podsPerJob(d.firstTrainer()) != d.slice.hosts {
		return
	}
	for _, key := range []string{
		topology.AnnotationRequiredTopology, topology.AnnotationSegmentSize, topology.AnnotationSegmentTopology,
	} {
		if g.annotations[key] != "" {
			return
		}
	}
	wish := map[string]string{topology.AnnotationRequiredTopology: d.slice.level}
	if d.input.Slices > 1 || d.slice.units > 1 {
		wish = map[string]string{
			topology.AnnotationSegmentSize:     strconv.Itoa(int(d.slice.hosts / d.slice.units)),
			topology.AnnotationSegmentTopology: d.slice.level,
		}
	}
	if d.slice.units > 1 {
		block := topology.AnnotationRequiredTopology
		if d.input.Slices > 1 { // each slice needs one block, and the job has no word for that
			block = topology.AnnotationPreferredTopology
		}
		wish[block] = tpuBlock
	}
	g.annotations = overlay(wish, g.annotations)
}

// trainers is the name of the ReplicatedJob that counts as the trainer.
func (d *draft) trainers() string { return d.spec.ReplicatedJobs[d.firstTrainer()].Name }

// checkSlices refuses nodes that slices would not be filled with. A job of one slice that has too few or too many is
// left to GKE's own webhook, and warned.
func (d *draft) checkSlices() field.ErrorList {
	if d.sliceFault != nil {
		return field.ErrorList{d.sliceFault}
	}
	nodes := field.NewPath("spec", "trainer", "numNodes")
	if count := d.input.Slices; count > 1 {
		of := fmt.Sprintf(
			"%d, the number of slices (replicas of replicated job %s of runtime %s)",
			count,
			d.trainers(),
			d.runtime.Name,
		)
		if d.input.Nodes%count != 0 {
			return field.ErrorList{field.Invalid(nodes, d.input.Nodes, "must be a multiple of "+of)}
		}
		if d.slice != nil && d.input.Nodes != d.slice.hosts*count {
			return field.ErrorList{field.Invalid(nodes, d.input.Nodes, fmt.Sprintf(
				"must be %d: %d hosts of each TPU slice %s, times %s",
				d.slice.hosts*count,
				d.slice.hosts,
				d.slice.shape,
				of,
			))}
		}
		return nil
	}
	if d.slice != nil && d.input.Nodes != d.slice.hosts {
		d.warnings = append(d.warnings, fmt.Sprintf(
			"TPU: a slice %s has %d hosts, and the job has %d nodes: they are placed without regard to slices; set spec.trainer.numNodes to %d",
			d.slice.shape,
			d.slice.hosts,
			d.input.Nodes,
			d.slice.hosts,
		))
	}
	return nil
}
