package fleet

import (
	"cmp"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-project/lockstep/dra"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

const resourceVersion = "resource.k8s.io/v1"

// published is a slice and where it was described.
type published struct {
	slice resourcev1.ResourceSlice
	from  yamlfile.Document
	// plain is set if the user wrote the slice, and not a model.
	plain bool
}

// readSlice takes from a slice of some cluster the fields that its driver wrote; fields that its old cluster wrote are
// dropped.
func readSlice(document yamlfile.Document) (resourcev1.ResourceSlice, error) {
	var found resourcev1.ResourceSlice
	if err := document.Decode(&found); err != nil {
		return resourcev1.ResourceSlice{}, err
	}
	if err := checkName(document, found.ObjectMeta, "ResourceSlice"); err != nil {
		return resourcev1.ResourceSlice{}, err
	}
	found.ObjectMeta = carried(found.ObjectMeta)
	spec := found.Spec
	switch {
	case spec.Driver == "":
		return found, document.At("slice "+found.Name+" names no driver", "give it spec.driver", "spec")
	case spec.Pool.Name == "":
		return found, document.At("slice "+found.Name+" names no pool", "give it spec.pool.name", "spec", "pool")
	case spec.NodeName == nil && spec.NodeSelector == nil && spec.AllNodes == nil && spec.PerDeviceNodeSelection == nil:
		return found, document.At("slice "+found.Name+" does not say for which nodes it is",
			"give it spec.nodeName, nodeSelector, allNodes or perDeviceNodeSelection", "spec")
	}
	return found, nil
}

// carried returns the part of an object's metadata that makes it the same object in another cluster.
func carried(meta metav1.ObjectMeta) metav1.ObjectMeta {
	delete(meta.Annotations, lastApplied)
	return metav1.ObjectMeta{Name: meta.Name, Labels: meta.Labels, Annotations: meta.Annotations}
}

func checkName(document yamlfile.Document, meta metav1.ObjectMeta, kind string) error {
	if meta.Name == "" {
		return document.At("the "+kind+" has no name", "give it metadata.name", "metadata")
	}
	if problems := validation.IsDNS1123Subdomain(meta.Name); len(problems) > 0 {
		what := "the name " + quote(meta.Name) + " of the " + kind + " is not valid"
		return document.At(what, mendBy(problems), "metadata", "name")
	}
	return nil
}

// checkSlices refuses slices that cannot stand beside each other or beside these nodes. Slices of models are made for
// their nodes; only their names can be taken.
func checkSlices(all []published, nodes []placed) error {
	first := map[string]yamlfile.Document{}
	for _, one := range all {
		other, taken := first[one.slice.Name]
		if taken {
			what := fmt.Sprintf("slice %s is described twice, first at %s", one.slice.Name, nameLine(other))
			return &badinput.Error{Where: nameLine(one.from), What: what, Mend: "give one of them another name"}
		}
		first[one.slice.Name] = one.from
	}
	if !slices.ContainsFunc(all, func(one published) bool { return one.plain }) {
		return nil
	}
	if err := checkHomes(all, nodes); err != nil {
		return err
	}
	return checkPools(all)
}

// checkHomes refuses slices of nodes that are not there, and pools of two nodes.
func checkHomes(all []published, nodes []placed) error {
	known := map[string]bool{}
	for _, one := range nodes {
		known[one.node.Name] = true
	}
	homes := map[dra.PoolID]string{}
	for _, one := range all {
		if one.slice.Spec.NodeName == nil {
			continue
		}
		node, pool := *one.slice.Spec.NodeName, poolOf(one.slice)
		if !known[node] {
			what := fmt.Sprintf("slice %s is of node %s, which is not in the fleet", one.slice.Name, node)
			return one.from.At(what, "describe that node, or leave the slice out", "spec", "nodeName")
		}
		if home := cmp.Or(homes[pool], node); home != node {
			what := fmt.Sprintf("pool %s of driver %s has slices of node %s and of node %s",
				pool.Name, pool.Driver, home, node)
			return one.from.At(what, "give each node a pool of its own, called like the node", "spec", "pool", "name")
		}
		homes[pool] = node
	}
	return nil
}

// checkPools refuses pools that no scheduler could use.
func checkPools(all []published) error {
	var of []*resourcev1.ResourceSlice
	for i := range all {
		of = append(of, &all[i].slice)
	}
	for _, problem := range dra.NewInventory(of).Problems() {
		i := slices.IndexFunc(all, func(one published) bool { return poolOf(one.slice) == problem.Pool })
		what := fmt.Sprintf(
			"pool %s of driver %s cannot be used: %s",
			problem.Pool.Name,
			problem.Pool.Driver,
			problem.What,
		)
		return all[i].from.At(what, "describe all slices of the pool as its driver publishes them", "spec", "pool")
	}
	return nil
}

func poolOf(slice resourcev1.ResourceSlice) dra.PoolID {
	return dra.PoolID{Driver: slice.Spec.Driver, Name: slice.Spec.Pool.Name}
}
