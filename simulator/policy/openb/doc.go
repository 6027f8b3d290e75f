// Package openb plays the experiment of the FGD paper (Weng, Yang et al., "Beware of Fragmentation", USENIX ATC '23):
// pods that request parts of a GPU, or several, arrive at a cluster one after another until they have requested 1.3
// times its GPUs; a policy chooses a node for each; no pod ever ends, and pods that do not fit are dropped. Policies
// are compared by the share of the GPUs that is allocated when pods have requested as many as the cluster has.
//
//	scene, err := openb.NewScene(nodes, pods, 42)
//	result, err := openb.Run(scene, openb.FGD, nil)
//	result.At(100).Allocated // per cent
//
// There is no clock, and random draws depend on the seed alone: equal lists and seeds give equal results on every
// machine, and scenes of one seed have the same arrivals and the same order of nodes for every policy. CPU is in
// thousandths of a core, memory in MiB, and GPUs are in thousandths of one GPU throughout.
package openb
