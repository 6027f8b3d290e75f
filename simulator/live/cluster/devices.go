package cluster

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// driversUser is the account that publishes the fleet's devices, in the place of the drivers on its nodes.
const driversUser = "lockstep-up-drivers"

// driversRole is all that it may do.
const driversRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lockstep-up-drivers}
rules:
- {apiGroups: [resource.k8s.io], resources: [deviceclasses, resourceslices], verbs: [create]}
- {apiGroups: [""], resources: [nodes], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lockstep-up-drivers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lockstep-up-drivers}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: lockstep-up-drivers}
`

// publishDevices plays the DRA drivers of nodes that are there: their classes, and slices that are deleted with their
// node. Where the player of NVIDIA's driver for ComputeDomains runs, it publishes that driver's devices. The other
// drivers' devices need no preparation: KWOK starts a pod that is bound, and a pod is bound when its devices are
// allocated.
func (c *Cluster) publishDevices(ctx context.Context, options Options) error {
	if len(options.Slices)+len(options.Classes) == 0 {
		return nil
	}
	client, err := kubernetes.NewForConfig(c.plan.access.drivers)
	if err != nil {
		return fmt.Errorf("making a client for the nodes' drivers: %w", err)
	}
	for i := range options.Classes {
		class := &options.Classes[i]
		_, err := client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) { // the player's, which it installed itself
			return refusedDevices("DeviceClass "+class.Name, err)
		}
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes for their drivers: %w", err)
	}
	uids := map[string]types.UID{}
	for i := range nodes.Items {
		uids[nodes.Items[i].Name] = nodes.Items[i].UID
	}
	for i := range options.Slices {
		slice := ownedByNode(&options.Slices[i], uids)
		if c.plan.cliques && nvlink.Publishes(slice.Spec.Driver) {
			continue
		}
		if _, err := client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return refusedDevices("ResourceSlice "+slice.Name, err)
		}
	}
	return nil
}

// ownedByNode returns a slice that is deleted with its node, if it belongs to one.
func ownedByNode(slice *resourcev1.ResourceSlice, uids map[string]types.UID) *resourcev1.ResourceSlice {
	if slice.Spec.NodeName == nil {
		return slice
	}
	owned := *slice
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Node", Name: *slice.Spec.NodeName, UID: uids[*slice.Spec.NodeName],
	}}
	return &owned
}

// refusedDevices is the error of an object that the API server refuses; if its contents are invalid, the fault is the
// fleet's.
func refusedDevices(what string, err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return &badinput.Error{
			Where: "--fleet", What: "the API server refuses " + what + ": " + err.Error(), Mend: "correct the fleet",
		}
	}
	return fmt.Errorf("publishing %s: %w", what, err)
}
