package openb

import (
	"path/filepath"
	"strings"
)

// Mean is a published mean of ten seeds, 42 to 51, and their standard deviation.
type Mean struct{ Mean, Deviation float64 }

// Published returns the published results for a list of pods: the allocation by each policy, in per cent of the GPUs,
// when pods had asked for all of them. Lists are known by their names (openb_pod_list_default.csv, .csv.gz); nil for
// one that is not known.
//
// Source: the tables in experiments/analysis/expected_results of hkust-adsl/kubernetes-scheduler-simulator, which
// figures 9 to 14 of the paper show.
func Published(file string) map[string]Mean {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".gz"), ".csv")
	row, known := published()[strings.TrimPrefix(name, "openb_pod_list_")]
	if !known {
		return nil
	}
	means := make(map[string]Mean, len(row))
	for i, policy := range Policies() {
		means[policy] = row[i]
	}
	return means
}

// published are the rows of the lists, by the policies in their order.
func published() map[string][6]Mean {
	return map[string][6]Mean{
		"default":     {{86.30, .31}, {90.62, .18}, {91.65, .58}, {91.78, .50}, {92.86, .14}, {95.23, .10}},
		"cpu050":      {{89.02, .25}, {93.03, .18}, {93.52, .33}, {93.46, .30}, {93.56, .12}, {95.00, .11}},
		"cpu250":      {{80.00, .31}, {83.57, .43}, {87.75, .58}, {88.05, .64}, {91.21, .24}, {93.20, .27}},
		"gpushare40":  {{84.86, .32}, {89.30, .13}, {89.76, .58}, {89.77, .50}, {91.44, .19}, {93.96, .07}},
		"gpushare100": {{78.90, .15}, {81.98, .28}, {82.22, .48}, {82.13, .48}, {84.62, .21}, {86.64, .15}},
		"gpuspec10":   {{86.26, .24}, {90.17, .37}, {91.96, .67}, {92.24, .62}, {93.10, .20}, {94.66, .18}},
		"gpuspec33":   {{83.87, .25}, {79.82, .24}, {81.09, .21}, {82.22, .37}, {80.39, .26}, {87.84, .17}},
		"multigpu20":  {{86.92, .49}, {91.85, .30}, {93.34, .57}, {93.50, .60}, {93.73, .24}, {95.53, .15}},
		"multigpu50":  {{81.28, .79}, {94.73, .19}, {95.69, .27}, {96.06, .29}, {95.62, .17}, {97.09, .10}},
	}
}
