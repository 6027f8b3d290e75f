package topology_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// Any user who may change a PodGroup may write any value there.
func TestSpanOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		least, most string
		want        topology.Span
		ok          bool
	}{
		{"2", "8", topology.Span{Least: 2, Most: 8}, true},
		{"3", "3", topology.Span{Least: 3, Most: 3}, true},
		{"", "8", topology.Span{}, false},
		{"2", "", topology.Span{}, false},
		{"0", "8", topology.Span{}, false},
		{"8", "2", topology.Span{}, false},
		{"2", "4294967296", topology.Span{}, false},
		{"two", "8", topology.Span{}, false},
	} {
		got, ok := topology.SpanOf(map[string]string{
			topology.AnnotationMinNodes: test.least, topology.AnnotationMaxNodes: test.most,
		})
		if got != test.want || ok != test.ok {
			t.Errorf("of %q and %q: %v, %v; want %v, %v", test.least, test.most, got, ok, test.want, test.ok)
		}
	}
}
