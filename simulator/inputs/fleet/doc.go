// Package fleet describes clusters: their nodes, with labels, capacity and devices.
//
// A fleet is one of the built-in ones (Names), or a file with Kubernetes Nodes, ResourceSlices and DeviceClasses (as
// kubectl get -o yaml prints them), or with the compact kind Fleet, which names groups of equal nodes:
//
//	apiVersion: simulator.lockstep.dev/v1alpha1
//	kind: Fleet
//	metadata: {name: mine}
//	spec:
//	  groups:
//	  - name: rack-{rack}-tray-{tray:02}
//	    counters:                 # the first varies slowest; each counts from 1
//	    - {name: rack, count: 4}
//	    - {name: tray, count: 18}
//	    labels:
//	      accelerator.topograph.run/domain: rack-{rack}
//	      nvidia.com/gpu.clique: "{uuid:rack}.1"
//	    capacity: {cpu: 144, memory: 960Gi, ephemeral-storage: 3500Gi}
//	    devices: [gb200-tray]     # a model of package devices: what DRA drivers publish on each node
//	    deviations:               # nodes of the group that are not like the others
//	    - {at: {rack: [2], tray: [17, 18]}, cordoned: true}
//	    - {every: 20, from: 5, missing: [gpu-3], occupied: [gpu-0]}
//
// In a group's name, in the values of its labels and annotations and in the values of its taints, {rack} stands for a
// counter, {tray:02} for the counter padded with zeros to two digits, and {uuid:rack} for a UUID that is made from the
// fleet's name and that counter ({uuid:row,rack} from several): the same on every machine and in every run.
//
// A deviation applies to the nodes at which some counters have some values (at), and of these to every n-th, beginning
// with a certain one (every, from). It cordons them, sets labels, removes labels (unlabeled), and lists the devices
// that have failed (missing) or are in use otherwise (occupied).
//
// A node lists GPUs in its capacity or has them as devices, not both. Slices and classes of a file are taken unchanged,
// without their owners; objects that are of no use to a scheduler (a slice of a missing node, a pool without all its
// slices) are refused.
//
// Every node is in the form that KWOK expects: annotated as fake, and with the status that KWOK would otherwise invent.
// This package does not interpret labels.
package fleet
