package report

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// mapData is the map over time.
type mapData struct {
	Layout layoutData `json:"layout"`
	// End is the last instant, in seconds. Starts are by instants, each but the first as the difference to the one
	// before; Lasts are durations, -1 for stays that have not ended at the end.
	End    int64   `json:"end"`
	Starts []int64 `json:"starts"`
	Lasts  []int64 `json:"lasts"`
	Jobs   []int   `json:"jobs"`
	// Runs is the number of stretches of neighboring nodes of a stay; First, Count and Squares are of stretches: the
	// first node, as the difference to the end of the stretch before, the number of nodes, and the squares of each, as
	// bits.
	Runs    []int    `json:"runs"`
	First   []int32  `json:"first"`
	Count   []int32  `json:"count"`
	Squares []uint32 `json:"bits"`
	// Names are those of jobs, Before of initial units; Members and Tenants are of jobs.
	Names   []string `json:"names"`
	Before  []string `json:"before"`
	Members []int    `json:"members"`
	Tenants []string `json:"tenants"`
	// Outages are rows of node, first and last instant, and 1 for a drain.
	Outages [][4]int64 `json:"outages"`
	// Omitted is the number of stays that are not shown, all of them shorter than OmittedBelow seconds.
	Omitted      int   `json:"omitted"`
	OmittedBelow int64 `json:"omittedBelow"`
}

// stretches is the largest number of stretches of a page, namesKept that of bytes of names of jobs.
const (
	stretches = 400_000
	namesKept = 600_000
)

// chart makes the data of the map.
func (r *Recorder) chart() *mapData {
	m := &mapData{Layout: laid(r.scene, r.nodes), End: whole(r.now)}
	stays, below := r.kept()
	m.Omitted, m.OmittedBelow = r.visible()-len(stays), whole(below)
	before := int64(0)
	for _, s := range stays {
		from := whole(s.from)
		m.Starts = append(m.Starts, from-before)
		before = from
		lasts := int64(-1)
		if s.to != scenario.Forever {
			lasts = whole(s.to) - from
		}
		m.Lasts, m.Jobs = append(m.Lasts, lasts), append(m.Jobs, s.job)
		m.pack(s.holds)
	}
	for _, o := range r.outages {
		drained := int64(0)
		if o.kind != engine.NodesFailed {
			drained = 1
		}
		m.Outages = append(m.Outages, [4]int64{int64(o.node), whole(o.from), whole(min(o.to, r.now)), drained})
	}
	r.name(m)
	return m
}

// pack adds the stretches of a stay.
func (m *mapData) pack(holds []hold) {
	runs, end := 0, int32(0)
	for rest := holds; len(rest) > 0; runs++ {
		n := stretch(rest)
		m.First, m.Count = append(m.First, rest[0].node-end), append(m.Count, int32(n))
		m.Squares = append(m.Squares, rest[0].squares)
		end = rest[0].node + int32(n)
		rest = rest[n:]
	}
	m.Runs = append(m.Runs, runs)
}

// stretch returns the number of neighbors from the first of these nodes on that give the same squares.
func stretch(holds []hold) int {
	n := 1
	for n < len(holds) && holds[n].node == holds[0].node+int32(n) && holds[n].squares == holds[0].squares {
		n++
	}
	return n
}

// count returns the number of stretches of a stay.
func (s *stay) count() int {
	n := 0
	for rest := s.holds; len(rest) > 0; n++ {
		rest = rest[stretch(rest):]
	}
	return n
}

// length returns the duration of a stay, until now if it has not ended.
func (s *stay) length(now time.Duration) time.Duration { return min(s.to, now) - s.from }

// visible returns the number of stays with squares.
func (r *Recorder) visible() int {
	n := 0
	for i := range r.stays {
		if len(r.stays[i].holds) > 0 {
			n++
		}
	}
	return n
}

// kept returns the stays that the map shows, by their starts: all that have squares, or the longest of them; below is
// then the duration that a stay needs to be shown.
func (r *Recorder) kept() (stays []*stay, below time.Duration) {
	total := 0
	for i := range r.stays {
		if s := &r.stays[i]; len(s.holds) > 0 {
			stays = append(stays, s)
			total += s.count()
		}
	}
	if total <= stretches {
		return stays, 0
	}
	slices.SortStableFunc(stays, func(a, b *stay) int { return cmp.Compare(b.length(r.now), a.length(r.now)) })
	sum, last := 0, 0
	for last < len(stays) && sum+stays[last].count() <= stretches {
		sum += stays[last].count()
		last++
	}
	below = stays[last].length(r.now) + time.Second
	stays = stays[:last]
	slices.SortStableFunc(stays, func(a, b *stay) int { return cmp.Compare(a.from, b.from) })
	return stays, below
}

// name adds the names of jobs, or their numbers if names were too much.
func (r *Recorder) name(m *mapData) {
	bytes := 0
	for i := range r.scene.Jobs {
		bytes += len(r.scene.Jobs[i].ID)
	}
	for i := range r.scene.Jobs {
		j := &r.scene.Jobs[i]
		if bytes <= namesKept {
			m.Names, m.Tenants = append(m.Names, j.ID), append(m.Tenants, j.Tenant)
		}
		m.Members = append(m.Members, len(j.Gang.Members))
	}
	for i := range r.scene.Running {
		m.Before = append(m.Before, cmp.Or(r.scene.Running[i].Name, "running "+strconv.Itoa(i)))
	}
}

// whole is whole seconds.
func whole(d time.Duration) int64 { return int64(d / time.Second) }
