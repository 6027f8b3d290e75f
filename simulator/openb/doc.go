// Package openb plays the experiment of the FGD paper (Weng, Yang et al., "Beware of Fragmentation", USENIX ATC '23): pods
// that ask for parts of a GPU, or for several, arrive at a cluster one after another until they have asked for 1.3 times
// its GPUs; a policy chooses a node for each; nothing ever ends, and what does not fit is dropped. How much of the GPUs
// is allocated when pods have asked for as much as there is, tells the policies apart (reference/metrics.md §6).
//
//	scene, err := openb.NewScene(nodes, pods, 42)
//	result, err := openb.Run(scene, openb.FGD, nil)
//	result.At(100).Allocated // per cent
//
// There is no clock, and chance comes from the seed alone: equal lists and seeds give equal results on every machine, and
// scenes of one seed have the same arrivals and the same order of nodes for every policy. CPU is in thousandths of a core,
// memory in MiB, and GPUs are in thousandths of one GPU throughout.
package openb
