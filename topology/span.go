package topology

import "strconv"

// Span is the number of nodes with which an elastic gang trains: at least Least, at most Most.
type Span struct{ Least, Most int }

// SpanOf reads the span from the annotations of a PodGroup; false for a gang of one size. Both annotations have to be
// 32-bit integers with 1 ≤ Least ≤ Most, as the controller writes them; otherwise both are ignored.
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
