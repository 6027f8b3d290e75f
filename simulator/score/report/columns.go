package report

import "github.com/lockstep-project/lockstep/simulator/score/measure"

// seriesData is the cluster over time, by columns.
type seriesData struct {
	At            []float64 `json:"at"`
	Capacity      []int64   `json:"capacity"`
	Used          []int64   `json:"used"`
	Demanded      []int64   `json:"demanded"`
	Fragmentation []float64 `json:"fragmentation"`
	Largest       []int64   `json:"largest"`
	Waiting       []int     `json:"waiting"`
	Oldest        []float64 `json:"oldest"`
}

// instants is the largest number of instants of a series on a page.
const instants = 2000

// columns takes over a series, or as many of its instants as a page has, at equal distances.
func columns(s *measure.Series) *seriesData {
	return &seriesData{
		At: rounded(thinned(s.Seconds), 1), Capacity: thinned(s.Capacity), Used: thinned(s.Used),
		Demanded: thinned(s.Demanded), Fragmentation: rounded(thinned(s.Fragmentation), 4),
		Largest: thinned(s.Largest), Waiting: thinned(s.Waiting),
		Oldest: rounded(thinned(s.OldestSeconds), 0),
	}
}

func thinned[T any](column []T) []T {
	n := len(column)
	if n <= instants {
		return column
	}
	out := make([]T, instants)
	for i := range out {
		out[i] = column[i*(n-1)/(instants-1)]
	}
	return out
}
