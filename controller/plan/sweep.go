package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lockstep-project/lockstep/topology"
)

// sweepAnnotations bound the number of trials of a sweep that run at a time.
func sweepAnnotations() []Annotation {
	return []Annotation{
		integer(
			topology.AnnotationSweepParallelism,
			1,
			"So many jobs of the sweep that the TrainJob's label "+topology.LabelSweep+" names run at a time, in its namespace: the others wait without "+
				"a reservation, and others pass them. The lowest number of the sweep's jobs counts.",
		).must(),
	}
}

// sweepLabels are the labels of the job's PodGroups, nil for a job of no sweep.
func (d *draft) sweepLabels() map[string]string {
	name := d.job.Labels[topology.LabelSweep]
	if name == "" {
		return nil
	}
	return map[string]string{topology.LabelSweep: name}
}

// checkSweep refuses a limit that would hold no job, and one for a job of several gangs: each of them would take a
// turn, and a job with one running gang could wait for ever for the turn of another one.
func (d *draft) checkSweep() field.ErrorList {
	if d.job.Annotations[topology.AnnotationSweepParallelism] != "" && d.job.Labels[topology.LabelSweep] == "" {
		return field.ErrorList{field.Required(field.NewPath("metadata", "labels").Key(topology.LabelSweep),
			"needed by "+topology.AnnotationSweepParallelism+", to say whose jobs are counted")}
	}
	limit := d.anyWish(topology.AnnotationSweepParallelism)
	if limit == "" || len(d.gangs) < 2 || d.sweepLabels() == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(annotationPath(topology.AnnotationSweepParallelism), limit, fmt.Sprintf(
		"counts gangs, and this job has %d; use a runtime whose scheduling has one group, or leave it out",
		len(d.gangs),
	))}
}
