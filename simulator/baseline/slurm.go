package baseline

import "github.com/lockstep-project/lockstep/topology"

type slurm struct{}

func (*slurm) Place(topology.Ledger, topology.Gang) ([]int, bool) { return nil, false }
