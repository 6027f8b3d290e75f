package openb_test

import (
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/policy/openb"
)

// Scores worked out by hand. A node is its free cores and the free parts of its GPUs, and has had pods with the GPUs in
// has; pods are cores and parts of GPUs. FGD expects as many pods for a whole GPU as for half of one.
func TestScores(t *testing.T) {
	const whole, half = 1000, 500
	eight := slices.Repeat([]int64{whole}, 8)
	for _, tc := range []struct {
		policy    string
		cores     int64
		free, has []int64
		needs     int64
		gpus      int64
		want      int
		why       string
	}{
		{openb.Random, 64, eight, nil, 8, half, 0, "all the same"},

		{openb.DotProduct, 96, eight, nil, 16, 2000, 82, "100·(1 − ½·(96/128·16/128 + 8/8·2/8))"},
		{openb.DotProduct, 96, eight, nil, 0, 0, 100, "asks for nothing"},

		{openb.BestFit, 96, eight, nil, 16, 2000, 31, "100·(1 − ½·((96 − 16)/128 + (8 − 2)/8))"},
		{openb.BestFit, 8, []int64{half}, []int64{half}, 8, half, 100, "nothing is left"},

		{openb.GPUPacking, 64, eight, nil, 8, 0, 0, "no GPU"},
		{openb.GPUPacking, 64, []int64{whole, whole}, nil, 8, whole, 31, "33 − 2, all are free"},
		{openb.GPUPacking, 64, eight, nil, 8, half, 25, "33 − 8"},
		{openb.GPUPacking, 64, []int64{0, whole, whole, 900}, nil, 8, 2000, 48, "50 − 2 of a node in use"},
		{openb.GPUPacking, 64, []int64{0, whole, 400}, nil, 8, half, 49, "50 − 1, what is shared is too full"},
		{openb.GPUPacking, 64, []int64{800, whole, 680}, nil, 8, half, 94, "100 − 68/10, the fullest that fits"},

		{openb.GPUClustering, 64, eight, nil, 8, 0, 0, "no GPU"},
		{openb.GPUClustering, 64, []int64{whole, whole}, nil, 8, whole, 43, "25·(8 − 2)/8 + 25, nobody is there"},
		{openb.GPUClustering, 64, []int64{whole, half}, []int64{half}, 8, 300, 95, "25·(8 − 1½)/8 + 75, its like"},
		{openb.GPUClustering, 64, []int64{0, half}, []int64{whole, half}, 8, 300, 73, "+ 50, its like and others"},
		{openb.GPUClustering, 64, []int64{0, whole}, []int64{whole}, 8, 300, 21, "others"},
		{openb.GPUClustering, 64, []int64{0, 0, whole}, []int64{2000}, 8, whole, 21, "others: as many GPUs count"},

		{openb.FGD, 64, []int64{whole, whole}, nil, 8, whole, 50, "what is left is as useful"},
		{openb.FGD, 64, []int64{whole, whole}, nil, 8, half, 43, "½ GPU is lost for ½ the pods: 100/(1 + e^¼)"},
		{openb.FGD, 64, []int64{whole, half}, nil, 8, half, 56, "that ½ GPU goes: 100/(1 + e^−¼)"},
		{openb.FGD, 64, []int64{half, half}, nil, 8, half, 56, "so does half of what is too small for whole ones"},
		{openb.FGD, 64, []int64{whole}, nil, 8, 0, 50, "CPU is there for the others"},
		{openb.FGD, 8, []int64{whole, whole}, nil, 8, 0, 11, "no CPU is left for two GPUs: 100/(1 + e^2)"},
	} {
		n := openb.Node{CPU: 1000 * tc.cores, Memory: 1, GPUs: tc.free}
		pod := list(tc.gpus)[0]
		pod.CPU = 1000 * tc.needs
		if got := openb.Score(tc.policy, n, list(tc.has...), pod, list(whole, half)); got != tc.want {
			t.Errorf("%s scores %d, not %d (%s)", tc.policy, got, tc.want, tc.why)
		}
	}
}
