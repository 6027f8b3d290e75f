package topology

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Level is one rung of the ladder: a short name for people and the node-label key that defines it.
type Level struct {
	Name, Key string
	// Weight is the excess cost of an edge of communication that crosses a boundary of this level over one that does
	// not, in hundredths of an edge between two nodes. 0 stands for 100.
	Weight int64
	// Accelerator levels (an NVLink domain) are a hierarchy of their own beside the network's: their values are unique
	// in the fleet, and their domains need not lie inside one domain of the network levels before them.
	Accelerator bool
	// TPUSlices levels count only node pools that are one TPU slice of several hosts: other pools connect nothing.
	TPUSlices bool
}

// LevelNode is the name of the level of single nodes, which every tree has; its key is kubernetes.io/hostname. It is
// not among Tree.Levels.
const LevelNode = "node"

// listedTiers is the number of fabric tiers in KnownLevels: a three-layer fat tree and one above it. DetectLevels and
// Configured have no such limit.
const listedTiers = 4

// KnownLevels returns the ladder of every label family we know, outermost first, as one list. Families are alternatives
// of each other (a cloud's layers, topograph's tiers), so a fleet carries only some of these levels; their order
// matters only within a family and between a family and the accelerator domains inside it. The weights are those of
// levels that stand alone: where several of them are one boundary, DetectLevels lets it be paid for once.
//
// A clique is inside a rack and not the reverse: a rack's NVLink fabric may be partitioned into several cliques.
func KnownLevels() []Level {
	tiers := make([]int, listedTiers)
	for i := range tiers {
		tiers[i] = listedTiers - 1 - i
	}
	rungs := ladder(tiers)
	levels := make([]Level, len(rungs))
	for i, r := range rungs {
		levels[i] = r.Level
	}
	return levels
}

// DetectLevels returns the known levels whose label at least one node carries, outermost first. Families names
// their sources.
func DetectLevels(nodes []Node) []Level { return priced(detect(nodes)) }

// Configured returns the ladder of an explicit list of label keys, outermost first. Known keys have their known names
// and weights, all others the part after the last slash as their name (with a number if that is taken) and the default
// weight. kubernetes.io/hostname may be last and adds nothing: every tree has the level of nodes.
//
// The given order is final: an accelerator domain that has a network level inside it is a rung like any other.
func Configured(keys []string) ([]Level, error) {
	if len(keys) > 0 && keys[len(keys)-1] == labelHostname {
		keys = keys[:len(keys)-1]
	}
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	known := ladder(tiersOf(slices.Values(keys)))
	rungs := make([]rung, len(keys))
	taken := make(map[string]bool, 2*len(keys)+1)
	taken[LevelNode] = true
	for i, key := range keys {
		taken[key] = true
		if at := slices.IndexFunc(known, func(r rung) bool { return r.Key == key }); at >= 0 {
			rungs[i] = known[at]
			rungs[i].TPUSlices = false // a configured level of node pools means all of them
			taken[known[at].Name] = true
		}
	}
	innermost := true
	for i, key := range slices.Backward(keys) {
		innermost = innermost && rungs[i].Accelerator
		rungs[i].Key, rungs[i].Accelerator = key, innermost
	}
	for i, r := range rungs {
		if r.Name == "" {
			rungs[i].Name = freeName(r.Key, taken)
			taken[rungs[i].Name] = true
		}
	}
	return priced(rungs), nil
}

func checkKeys(keys []string) error {
	for i, key := range keys {
		fault := &InputError{Of: "levels", What: "label key " + strconv.Quote(key)}
		switch {
		case key == "":
			fault.What, fault.Cause = "label key number "+strconv.Itoa(i+1)+" is empty", ErrNoLevel
		case key == labelHostname:
			fault.Cause, fault.Hint = ErrOrder, "it is the level of single nodes: put it last or leave it out"
		case slices.Contains(keys[:i], key):
			fault.Cause = ErrDuplicate
		default:
			continue
		}
		return fault
	}
	return nil
}

// freeName makes a name for a level that we do not know. A level is looked up by name or by key, so neither the name
// nor the key of another level will do.
func freeName(key string, taken map[string]bool) string {
	stem := cmp.Or(key[strings.LastIndexByte(key, '/')+1:], key)
	name := stem
	for n := 2; taken[name] && (name != key || name == LevelNode); n++ {
		name = stem + "-" + strconv.Itoa(n)
	}
	return name
}

// priced gives the rungs their weights as a ladder. Leaving the rack costs nothing more than leaving the clique did:
// of several rungs that are one boundary the innermost is charged, and those around it only decide between placements
// that are otherwise equal.
func priced(rungs []rung) []Level {
	levels := make([]Level, len(rungs))
	var charged []string
	for i, r := range slices.Backward(rungs) {
		levels[i] = r.Level
		switch {
		case r.boundary == "":
		case slices.Contains(charged, r.boundary):
			levels[i].Weight = weightCharged
		default:
			charged = append(charged, r.boundary)
		}
	}
	return levels
}
