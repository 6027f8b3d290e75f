package progress

import (
	"math"
	"strings"
)

// block is a column of a height between 0 and 1; only nothing at all is a dot.
func block(share float64) rune {
	const heights = "▁▂▃▄▅▆▇█"
	columns := []rune(heights)
	if share <= 0 {
		return '·'
	}
	return columns[min(int(math.Ceil(share*float64(len(columns)))), len(columns))-1]
}

// spark is a column for each share; where they are more than fit, for the mean of neighbors.
func spark(shares []float64, width int) string {
	width = min(width, len(shares))
	var b strings.Builder
	for i := range max(width, 0) {
		from, to := i*len(shares)/width, (i+1)*len(shares)/width
		sum := 0.0
		for _, s := range shares[from:to] {
			sum += s
		}
		b.WriteRune(block(sum / float64(to-from)))
	}
	return b.String()
}

// heat is a column for the use of each domain; a cross is one without accelerators in service.
func heat(domains []DomainUse) string {
	var b strings.Builder
	for _, d := range domains {
		if d.There == 0 {
			b.WriteRune('×')
			continue
		}
		b.WriteRune(block(float64(d.InUse) / float64(d.There)))
	}
	return b.String()
}
