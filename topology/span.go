package topology

import "strconv"

// Span is between how many nodes an elastic gang trains.
type Span struct{ Least, Most int }

// SpanOf reads the span off the annotations of a PodGroup, false for a gang of one size. The controller writes both bounds; of a group on which they are not
// two numbers with 1 ≤ Least ≤ Most, nothing is believed.
func SpanOf(annotations map[string]string) (Span, bool) {
	least, err := strconv.Atoi(annotations[AnnotationMinNodes])
	if err != nil {
		return Span{}, false
	}
	most, err := strconv.Atoi(annotations[AnnotationMaxNodes])
	if err != nil || least < 1 || most < least {
		return Span{}, false
	}
	return Span{Least: least, Most: most}, true
}
