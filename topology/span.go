package topology

import "strconv"

// Span is between how many nodes an elastic gang trains.
type Span struct{ Least, Most int }

// SpanOf reads the span off the annotations of a PodGroup, false for a gang of one size. The controller writes both bounds; of a group on which they are not
// two numbers of 32 bits with 1 ≤ Least ≤ Most, nothing is believed.
func SpanOf(annotations map[string]string) (Span, bool) {
	least, err := strconv.ParseInt(annotations[AnnotationMinNodes], 10, 32)
	if err != nil {
		return Span{}, false
	}
	most, err := strconv.ParseInt(annotations[AnnotationMaxNodes], 10, 32)
	if err != nil || least < 1 || most < least {
		return Span{}, false
	}
	return Span{Least: int(least), Most: int(most)}, true
}
