package importer

import (
	"fmt"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// The elastic gangs of Options.Elastic: the number of their members with which they may train, and the interval at
// which they save their work if jobs do not do so anyway. Pollux (Qiao et al., OSDI 2021) has jobs train on a quarter
// of the GPUs that they request, and on fewer.
const (
	leastPart    = 4
	elasticSaves = 10 * time.Minute
)

// addElastic makes gangs of several pods elastic (Options.Elastic): those that start whole and ask for no segments.
// Their work takes longer with fewer members.
func (s *builder) addElastic() {
	if s.Options.Elastic <= 0 {
		return
	}
	const parts = 1_000_000
	for i := range s.Jobs {
		j := &s.Jobs[i]
		all := len(j.Gang.Members)
		if all < 2 || len(j.Gang.Shapes) != 1 || j.Needed != all || j.Min != 0 || j.Gang.Segment.Size > 0 ||
			j.Bound != nil || j.Duration == scenario.Forever {
			continue
		}
		if float64(hashed(s.Options.Seed, streamElastic, j.ID)%parts) >= s.Options.Elastic*parts {
			continue
		}
		j.Min, j.Shrinks, j.Replaces = max(1, all/leastPart), true, false
		if j.Saves == 0 {
			j.Saves = elasticSaves
		}
	}
	s.Source += fmt.Sprintf(
		"; %.4g %% of the gangs train with a quarter of their members or more, in shares of ours",
		100*s.Options.Elastic,
	)
}
