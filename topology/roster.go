package topology

import (
	"hash/maphash"
	"slices"
	"strings"
)

// entry is a node: its name and its label values, outermost first, "" where a label is missing. A name of "" is a
// number without a node.
type entry struct {
	name string
	path []string
	// torusText is the node's position in a torus, see the function of that name.
	torusText string
}

// next is the first level further in than the given one that the entry has a label for, or the number of levels.
func (e entry) next(level int) int {
	for level++; level < len(e.path) && e.path[level] == ""; level++ {
	}
	return level
}

// The sizes of the roster's pieces: a change copies one page and one shelf.
const (
	pageSize = 256
	shelves  = 256
)

// roster numbers the nodes and finds them by name. It never changes: changes return another roster that shares most of
// its pages.
type roster struct {
	len   int
	pages [][]entry
	// byName are the numbers of nodes by a hash of their name, each shelf sorted by name.
	byName [][]int32
	seed   maphash.Seed
	// vacant is the chain of numbers without a node.
	vacant *vacancy
}

type vacancy struct {
	number int
	next   *vacancy
}

// newRoster numbers the entries in their order. It returns a name that is there twice, if one is.
func newRoster(entries []entry) (roster, string) {
	r := roster{len: len(entries), byName: make([][]int32, shelves), seed: maphash.MakeSeed()}
	for page := range slices.Chunk(entries, pageSize) {
		r.pages = append(r.pages, slices.Clone(page))
	}
	for i, e := range entries {
		s := r.shelf(e.name)
		r.byName[s] = append(r.byName[s], int32(i))
	}
	for _, shelf := range r.byName {
		slices.SortFunc(
			shelf,
			func(a, b int32) int { return strings.Compare(r.entry(int(a)).name, r.entry(int(b)).name) },
		)
		for i := 1; i < len(shelf); i++ {
			if name := r.entry(int(shelf[i])).name; name == r.entry(int(shelf[i-1])).name {
				return r, name
			}
		}
	}
	return r, ""
}

func (r roster) shelf(name string) int { return int(maphash.String(r.seed, name) % shelves) }

func (r roster) entry(i int) entry { return r.pages[i/pageSize][i%pageSize] }

// find returns where in its shelf the name is, or would be.
func (r roster) find(name string) (shelf, at int, found bool) {
	if len(r.byName) == 0 {
		return 0, 0, false
	}
	shelf = r.shelf(name)
	at, found = slices.BinarySearchFunc(r.byName[shelf], name, func(i int32, name string) int {
		return strings.Compare(r.entry(int(i)).name, name)
	})
	return shelf, at, found
}

func (r roster) index(name string) (int, bool) {
	shelf, at, found := r.find(name)
	if !found || name == "" {
		return 0, false
	}
	return int(r.byName[shelf][at]), true
}

// set changes the entry of a number, whose name stays.
func (r roster) set(i int, e entry) roster {
	r.pages = slices.Clone(r.pages)
	page := slices.Clone(r.pages[i/pageSize])
	page[i%pageSize] = e
	r.pages[i/pageSize] = page
	return r
}

// add gives a new entry a number.
func (r roster) add(e entry) (int, roster) {
	shelf, at, _ := r.find(e.name)
	i := r.len
	if r.vacant != nil {
		i, r.vacant = r.vacant.number, r.vacant.next
		r = r.set(i, e)
	} else {
		r.len++
		r.pages = slices.Clone(r.pages)
		if i%pageSize == 0 {
			r.pages = append(r.pages, nil)
		}
		last := len(r.pages) - 1
		r.pages[last] = append(slices.Clip(r.pages[last]), e)
	}
	r.byName = slices.Clone(r.byName)
	r.byName[shelf] = slices.Insert(slices.Clip(r.byName[shelf]), at, int32(i))
	return i, r
}

// remove leaves the number without a node.
func (r roster) remove(i int) roster {
	shelf, at, _ := r.find(r.entry(i).name)
	r.byName = slices.Clone(r.byName)
	r.byName[shelf] = slices.Delete(slices.Clone(r.byName[shelf]), at, at+1)
	r = r.set(i, entry{path: make([]string, len(r.entry(i).path))})
	r.vacant = &vacancy{i, r.vacant}
	return r
}
