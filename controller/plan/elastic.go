package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/topology"
)

// span is between how many nodes an elastic job trains. The zero span is that of a job of one size.
type span struct {
	least, most int32
	// fault is the reason why there is none although the job asks for one.
	fault *field.Error
}

func (s span) isElastic() bool { return s.least > 0 }

// newSpan reads the span of a job that would otherwise have so many nodes. A bound that is not given is that number.
func (d *draft) newSpan(nodes int32) span {
	least, most := d.jobWish(topology.AnnotationMinNodes), d.jobWish(topology.AnnotationMaxNodes)
	if least == "" && most == "" {
		return span{}
	}
	bound := func(key, text string) (int32, *field.Error) {
		if text == "" {
			return max(1, nodes), nil
		}
		line, _ := annotation(key)
		if problem := line.Fault(text); problem != "" {
			return 0, field.Invalid(annotationPath(key), text, problem)
		}
		number, _ := strconv.ParseInt(text, 10, 32)
		return int32(number), nil
	}
	var out span
	var fewest, greatest *field.Error
	out.least, fewest = bound(topology.AnnotationMinNodes, least)
	out.most, greatest = bound(topology.AnnotationMaxNodes, most)
	key, value, word := topology.AnnotationMinNodes, least, "more"
	if nodes > out.most {
		key, value, word = topology.AnnotationMaxNodes, most, "fewer"
	}
	switch {
	case fewest != nil || greatest != nil:
		out.fault = cmp.Or(fewest, greatest)
	case out.least > out.most && least != "" && most != "":
		out.fault = field.Invalid(annotationPath(topology.AnnotationMinNodes), least,
			"must not be greater than "+topology.AnnotationMaxNodes+", which is "+most)
	case nodes < out.least, nodes > out.most:
		out.fault = field.Invalid(annotationPath(key), value,
			fmt.Sprintf("the job asks for %d nodes by numNodes, and this for %s", nodes, word))
	}
	if out.fault != nil {
		return span{fault: out.fault}
	}
	return out
}

// stretch gives the input of an elastic job its span. All its pods are made, and those beyond the fewest wait until
// there is room.
func (d *draft) stretch() {
	d.span = d.newSpan(d.input.Nodes)
	if d.span.isElastic() {
		d.input.Nodes, d.input.LeastNodes = d.span.most, d.span.least
		d.input.MaxRestarts = d.maxRestarts(trainers(d.spec.ReplicatedJobs))
	}
}

// checkElastic refuses a span for which there is no gang that could have one.
func (d *draft) checkElastic() field.ErrorList {
	if d.span.fault != nil {
		return field.ErrorList{d.span.fault}
	}
	if !d.span.isElastic() {
		return nil
	}
	key := topology.AnnotationMinNodes
	if d.jobWish(key) == "" {
		key = topology.AnnotationMaxNodes
	}
	refuse := func(why string) field.ErrorList {
		return field.ErrorList{field.Invalid(annotationPath(key), d.jobWish(key), why)}
	}
	_, ok := d.framework.(framework.Elastic)
	switch {
	case !ok:
		return refuse("jobs of " + d.framework.Name() + " cannot go on with another number of nodes")
	case len(d.gangMembers()) == 0:
		return refuse("needs a gang, and " + topology.AnnotationGang + " is off for this job")
	case d.jobWish(topology.AnnotationOnDisruption) == disruptionRestart:
		return refuse("an elastic job goes on when it loses a node; leave " + topology.AnnotationOnDisruption + " out")
	case d.input.MaxRestarts == 0:
		return refuse(
			"the processes of an elastic job start again when a node leaves; " + topology.AnnotationMaxRestarts +
				" must be at least 1",
		)
	case d.nvlink != mnnvlNone:
		return refuse(
			"nodes that train by NVLink across nodes do not join and leave; leave " + topology.AnnotationMNNVL + " out",
		)
	}
	return nil
}

// lets counts the pods of the ReplicatedJob at index i that need not be there at the start.
func (d *draft) lets(i int) int32 {
	if !d.span.isElastic() || i != d.firstTrainer() {
		return 0
	}
	return d.span.most - d.span.least
}

// ofSpan are the annotations by which the scheduler knows the gang of an elastic trainer; nil for other gangs.
func (d *draft) ofSpan(g *gang) map[string]string {
	first := d.firstTrainer()
	if !d.span.isElastic() || first < 0 || !slices.Contains(g.members, d.spec.ReplicatedJobs[first].Name) {
		return nil
	}
	return map[string]string{
		topology.AnnotationMinNodes: strconv.Itoa(int(d.span.least)),
		topology.AnnotationMaxNodes: strconv.Itoa(int(d.span.most)),
	}
}

// makeElastic has the Job of an elastic trainer end with its first rank, with which torchrun's agents end together:
// ranks that never had a node would prevent its success for ever. Each rank may fail as often as the job may restart,
// and all of them at once: they do when the first rank, which runs the rendezvous store, is lost.
func (d *draft) makeElastic(replicated *jobsetv1alpha2.ReplicatedJob) {
	if !d.span.isElastic() {
		return
	}
	job := &replicated.Template.Spec
	job.CompletionMode = new(batchv1.IndexedCompletion)
	if job.SuccessPolicy == nil {
		job.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0")}}}
	}
	if job.BackoffLimitPerIndex == nil {
		limit := d.input.MaxRestarts
		all := min(int64(limit)*int64(d.span.most), math.MaxInt32)
		job.BackoffLimitPerIndex, job.BackoffLimit = new(limit), new(int32(all))
		job.MaxFailedIndexes = new(int32(0))
	}
}
