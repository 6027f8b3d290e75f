package baseline

import "github.com/lockstep-project/lockstep/topology"

type kueue struct{}

func (*kueue) Place(topology.Ledger, topology.Gang) ([]int, bool) { return nil, false }
