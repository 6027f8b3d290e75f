package dra

// flow is a small network: how much can flow from its source (0) to its sink (1)?
type flow struct {
	// out lists the edges that leave each vertex. Edge e^1 is edge e backwards.
	out  [][]int
	to   []int
	room []int
}

const (
	source = 0
	sink   = 1
)

func newFlow() *flow { return &flow{out: make([][]int, 2)} }

func (f *flow) vertex() int {
	f.out = append(f.out, nil)
	return len(f.out) - 1
}

func (f *flow) edge(from, to, room int) {
	f.out[from] = append(f.out[from], len(f.to))
	f.out[to] = append(f.out[to], len(f.to)+1)
	f.to = append(f.to, to, from)
	f.room = append(f.room, room, 0)
}

// most returns the largest flow.
func (f *flow) most() int {
	total := 0
	for {
		more := f.augment()
		if more == 0 {
			return total
		}
		total += more
	}
}

// augment sends as much as it can along one shortest path that has room.
func (f *flow) augment() int {
	via := make([]int, len(f.out)) // the edge by which a vertex was reached, plus one
	queue := []int{source}
	for len(queue) > 0 && via[sink] == 0 {
		at := queue[0]
		queue = queue[1:]
		for _, e := range f.out[at] {
			if next := f.to[e]; f.room[e] > 0 && via[next] == 0 && next != source {
				via[next] = e + 1
				queue = append(queue, next)
			}
		}
	}
	if via[sink] == 0 {
		return 0
	}
	least := unlimited
	for at := sink; at != source; at = f.to[(via[at]-1)^1] {
		least = min(least, f.room[via[at]-1])
	}
	for at := sink; at != source; at = f.to[(via[at]-1)^1] {
		f.room[via[at]-1] -= least
		f.room[(via[at]-1)^1] += least
	}
	return least
}

// unlimited is more than any demand: a claim has at most 32 devices.
const unlimited = 1 << 30
