package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

// The values of the annotation for NVLink across nodes.
const (
	mnnvlRequired  = "required"
	mnnvlPreferred = "preferred"
	mnnvlNone      = "none"
)

// maxClique is the largest number of nodes of one IMEX domain, and so of one clique: a rack of NVL72 has 18 trays.
const maxClique = 18

// wantsNVLink returns the job's wish for NVLink across nodes: required, preferred, or none. A preference has no effect
// where no driver makes channels.
func (d *draft) wantsNVLink(options Options) string {
	switch value := d.jobWish(topology.AnnotationMNNVL); {
	case value == mnnvlRequired:
		return mnnvlRequired
	case value == mnnvlPreferred && options.ComputeDomains && !options.WithoutDomain:
		return mnnvlPreferred
	}
	return mnnvlNone
}

// inDomain reports whether pods of the job get channels of a ComputeDomain.
func (d *draft) inDomain() bool {
	return slices.ContainsFunc(d.gangs, func(g *gang) bool { return len(g.channels) > 0 })
}

// withGPUs returns the members whose pods hold GPUs, and the number of these pods together. Launchers without GPUs, and
// helpers, have nothing that NVLink could connect.
func (d *draft) withGPUs(members []member) (names []string, pods int32) {
	for _, m := range members {
		if i := position(d.spec.ReplicatedJobs, m.name); len(gpuContainers(m.template.Spec)) > 0 {
			names, pods = append(names, m.name), pods+d.pods(i)
		}
	}
	return names, pods
}

// gpuContainers are the places of a pod's containers that hold GPUs. The pod does not name the devices of a claim; the
// claims of a container that trains are taken to be for GPUs if no container asks for them by name.
func gpuContainers(pod corev1.PodSpec) []int {
	var byName, byClaim []int
	for i, container := range pod.Containers {
		switch {
		case gpus(container.Resources) > 0:
			byName = append(byName, i)
		case container.Name == trainerv1alpha1.NodeName && len(container.Resources.Claims) > 0:
			byClaim = append(byClaim, i)
		}
	}
	if len(byName) > 0 {
		return byName
	}
	return byClaim
}

// wishClique adds the wishes that NVLink implies for a gang: one clique for it, or for each of its segments, and one
// pod with a channel per node. Contradicting wishes are refused where NVLink is required.
func (d *draft) wishClique(g *gang, members []member) {
	names, pods := d.withGPUs(members)
	if len(names) == 0 {
		return
	}
	g.channels = names
	wishes := g.annotations
	if d.nvlink == mnnvlRequired {
		g.faults = append(g.faults, d.requireClique(wishes, members, pods)...)
	} else if !isClique(wishes[topology.AnnotationRequiredTopology]) {
		wishes[topology.AnnotationPreferredTopology] = cmp.Or(
			wishes[topology.AnnotationPreferredTopology], topology.LabelClique)
	}
	if len(names) == len(members) {
		// A node has one channel. Others of the gang, a launcher, may stand beside its holder.
		wishes[topology.AnnotationMaxPerNode] = "1"
	}
}

// requireClique adds the clique to the wishes of a gang that requires NVLink, and returns the wishes that contradict
// it. A required level of the user's stays: the gang is then one segment in the clique, wherever that level is in the
// tree.
func (d *draft) requireClique(wishes map[string]string, members []member, pods int32) field.ErrorList {
	faults := d.checkClique(wishes, pods)
	if len(faults) > 0 {
		return faults
	}
	switch required := wishes[topology.AnnotationRequiredTopology]; {
	case wishes[topology.AnnotationSegmentSize] != "" || isClique(required):
	case required == "":
		wishes[topology.AnnotationRequiredTopology] = topology.LabelClique
	default:
		all := int32(0)
		for _, m := range members {
			all += d.pods(position(d.spec.ReplicatedJobs, m.name))
		}
		wishes[topology.AnnotationSegmentTopology] = topology.LabelClique
		wishes[topology.AnnotationSegmentSize] = strconv.Itoa(int(all))
	}
	return nil
}

// checkClique returns the wishes of a gang with that many channels that contradict required NVLink.
func (d *draft) checkClique(wishes map[string]string, pods int32) field.ErrorList {
	var faults field.ErrorList
	refuse := func(key, reason string) {
		faults = append(faults, field.Invalid(annotationPath(key), wishes[key],
			reason+"; "+topology.AnnotationMNNVL+" is "+mnnvlRequired))
	}
	required := wishes[topology.AnnotationRequiredTopology]
	if besideClique(required) {
		refuse(topology.AnnotationRequiredTopology,
			"it is not around an NVLink clique; leave it out, or name a level that is")
	} else if required != "" && !isClique(required) && d.scheduler() == "" {
		refuse(topology.AnnotationRequiredTopology,
			"the native scheduler keeps to one level, and that is to be the clique; leave it out")
	}
	if value := wishes[topology.AnnotationMaxPerNode]; value != "" && value != "1" {
		refuse(topology.AnnotationMaxPerNode, "a node has one channel, so it must be 1 or left out")
	}
	size, level := wishes[topology.AnnotationSegmentSize], wishes[topology.AnnotationSegmentTopology]
	if number, err := strconv.Atoi(size); err == nil && number > maxClique {
		refuse(topology.AnnotationSegmentSize, fmt.Sprintf("a clique has at most %d nodes", maxClique))
	}
	if level != "" && !isClique(level) {
		refuse(topology.AnnotationSegmentTopology, "segments must be at the level of the clique")
	}
	if size == "" && pods > maxClique {
		faults = append(faults, field.Invalid(annotationPath(topology.AnnotationMNNVL), mnnvlRequired, fmt.Sprintf(
			"%d pods need a node each, and a clique has at most %d; ask for segments of at most %d with %s and %s",
			pods, maxClique, maxClique, topology.AnnotationSegmentSize, topology.AnnotationSegmentTopology)))
	}
	return faults
}

// checkMNNVL refuses required NVLink that no driver would provide, and a channel that a pod has already. The job is
// refused at once, since it would wait for ever.
func (d *draft) checkMNNVL(options Options) field.ErrorList {
	faults := d.checkChannels()
	if d.nvlink != mnnvlRequired {
		return faults
	}
	refuse := func(reason string) {
		faults = append(faults, field.Invalid(annotationPath(topology.AnnotationMNNVL), mnnvlRequired, reason))
	}
	gangs := slices.DeleteFunc(slices.Clone(d.gangs), func(g *gang) bool { return isBasic(g.rules) })
	switch {
	case !options.ComputeDomains:
		refuse("this cluster served no ComputeDomains (" + ComputeDomainKind().GroupVersion().String() +
			") when the controller started; install NVIDIA's DRA driver and start the controller again")
	case len(d.gangs) == 0:
		refuse("needs a gang, and " + topology.AnnotationGang + " is off for this job")
	case len(gangs) == 0:
		refuse("needs a gang, and the scheduling of runtime " + d.runtime.Name + " has policy basic")
	case !d.inDomain():
		refuse("no pod of the gang asks for GPUs, by resources or by claims")
	case d.scheduler() == "" && !options.KeepsConstraints:
		refuse("the native scheduler reads the clique in a field that this API server drops; leave " +
			topology.AnnotationScheduler + " out")
	}
	return faults
}

// checkChannels refuses pods that have a claim of the channel's name already: a node has one channel.
func (d *draft) checkChannels() field.ErrorList {
	var faults field.ErrorList
	for _, g := range d.gangs {
		for _, name := range g.channels {
			pod := d.spec.ReplicatedJobs[position(d.spec.ReplicatedJobs, name)].Template.Spec.Template.Spec
			if slices.ContainsFunc(
				pod.ResourceClaims,
				func(c corev1.PodResourceClaim) bool { return c.Name == channelClaim },
			) {
				faults = append(faults, field.Invalid(annotationPath(topology.AnnotationMNNVL), d.nvlink, fmt.Sprintf(
					"the pods of replicated job %s have a claim %s already, and a node has one channel; leave one out",
					name, channelClaim)))
			}
		}
	}
	return faults
}

// isClique reports whether a level is the clique, by its name or by its label.
func isClique(level string) bool {
	return levelKey(level) == topology.LabelClique
}

// besideClique reports whether a level is known to be inside a clique, or of machines that have none: a node, a level
// of several nodes inside a rack, and TPUs. The scheduler checks levels that are not known.
func besideClique(level string) bool {
	key := levelKey(level)
	return slices.Contains([]string{
		topology.LevelNode,
		corev1.LabelHostname,
		"cloud.google.com/gce-topology-host",
		"oci.oraclecloud.com/rdma.host_id",
		"accelerator.topograph.run/sub-domain",
	}, key) || strings.HasPrefix(key, "cloud.google.com/gke-tpu-")
}

// levelKey is the node label of a known level, which may be named by it or by a short name; other levels are their own.
func levelKey(level string) string {
	for _, known := range topology.KnownLevels() {
		if level == known.Name {
			return known.Key
		}
	}
	return level
}
