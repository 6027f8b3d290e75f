package explain

import (
	"cmp"
	"slices"
)

// Nearest are at most n of the names, those first that are spelled most like the word.
func Nearest(word string, names []string, n int) []string {
	out := slices.Clone(names)
	slices.SortStableFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(word, a), distance(word, b)), cmp.Compare(a, b))
	})
	return out[:min(n, len(out))]
}

// distance returns the number of letters to add, remove or change to make one word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
