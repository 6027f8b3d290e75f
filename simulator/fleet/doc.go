// Package fleet describes clusters: which nodes there are, with which labels and capacity.
//
// A fleet is one of the built-in ones (Names), or a file with Kubernetes Nodes (as kubectl get nodes -o yaml prints
// them), or with the compact kind Fleet, which names groups of equal nodes:
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
//	    capacity: {cpu: 144, memory: 960Gi, nvidia.com/gpu: 4}
//
// In a group's name, in the values of its labels and annotations and in the values of its taints, {rack} stands for a
// counter, {tray:02} for the counter padded with zeros to two digits, and {uuid:rack} for a UUID that is made from the
// fleet's name and that counter ({uuid:row,rack} from several): the same on every machine and in every run.
//
// Every node comes out as KWOK wants it: annotated as fake, and with the status that KWOK would otherwise invent.
// What the labels mean is not decided here.
package fleet
