// Package standing holds the scheduler's reports on a gang for components that display it: its place, or its turn in
// the queue. The reports are conditions of the PodGroup, whose messages have a fixed form: Parse reads the output of
// String. Only the scheduler writes a PodGroup's status; annotations could be any client's.
package standing

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The conditions of a PodGroup.
const (
	// Waiting is True while the gang waits; the message gives the cause. Its reasons are in package explanation.
	Waiting = "lockstep.dev/Waiting"
	// Placed is True while the gang has its nodes. The message is a Place.
	Placed = "lockstep.dev/Placed"
	// Queued is True while the gang waits. The message is a Turn.
	Queued = "lockstep.dev/Queued"
)

// Place is the place of a gang. The zero Place is one that the scheduler's filters chose: its nodes are unknown.
type Place struct {
	// Nodes is the number of nodes that it uses; at least 1.
	Nodes int
	// Domain is the smallest domain that holds them all, as topology.Domain prints it; "cluster" if only the whole
	// fleet does.
	Domain string
	// Quality is a proven lower bound of the cost of the best place for the gang on the fleet at the time, divided by
	// the cost of this place: from 0.01 to 1, and 1 for one that cannot be better.
	Quality float64
}

const filtersChose = "nodes that the scheduler's filters chose"

// String prints the place: "16 nodes in su-1/leaf-3, quality 0.97".
func (p Place) String() string {
	if p.Nodes == 0 {
		return filtersChose
	}
	quality := strconv.FormatFloat(max(worst, p.Quality), 'f', 2, 64)
	return strconv.Itoa(p.Nodes) + " nodes in " + p.Domain + ", quality " + quality
}

// worst is the smallest quality that is printed.
const worst = 0.01

// placeText matches the output of Place.String.
var placeText = regexp.MustCompile(`^(\d+) nodes in (\S+), quality (\d\.\d\d)$`)

// ParsePlace parses the output of String.
func ParsePlace(text string) (Place, error) {
	if text == filtersChose {
		return Place{}, nil
	}
	parts := placeText.FindStringSubmatch(text)
	if parts == nil {
		return Place{}, fmt.Errorf("%q is no place: want \"N nodes in DOMAIN, quality Q\"", text)
	}
	nodes, err := strconv.Atoi(parts[1])
	if err != nil {
		return Place{}, fmt.Errorf("%q is no place: %w", text, err)
	}
	quality, _ := strconv.ParseFloat(parts[3], 64) // the expression lets only such numbers through
	return Place{Nodes: nodes, Domain: parts[2], Quality: quality}, nil
}

// Turn is the position of a gang in the queue.
type Turn struct {
	// Position is 1 for the first that waits.
	Position int
	// Reserved is the domain in which a place is reserved for the gang; empty without a reservation.
	Reserved string
	// Open is set if others may use the place: too many accelerators would idle until it is free.
	Open bool
	// Start is the time at which the place should be free, as RFC 3339 has it; empty if that is not known.
	Start string
	// Estimated is set if Start depends on estimated run times.
	Estimated bool
}

const (
	reservedIn  = "place reserved in "
	placeIn     = "place, open to others, in "
	startAt     = "to start at "
	estimatedAt = "estimated to start at "
)

// String prints the turn: "position 3; place reserved in su-1; estimated to start at 2026-11-24T10:00:00Z".
func (t Turn) String() string {
	parts := []string{"position " + strconv.Itoa(t.Position)}
	switch {
	case t.Reserved != "" && t.Open:
		parts = append(parts, placeIn+t.Reserved)
	case t.Reserved != "":
		parts = append(parts, reservedIn+t.Reserved)
	}
	switch {
	case t.Start == "":
	case t.Estimated:
		parts = append(parts, estimatedAt+t.Start)
	default:
		parts = append(parts, startAt+t.Start)
	}
	return strings.Join(parts, "; ")
}

// turnText matches the output of Turn.String.
var turnText = regexp.MustCompile(
	`^position (\d+)(?:; (` + placeIn + `|` + reservedIn + `)([^;]+))?(?:; (` + startAt + `|` + estimatedAt + `)(\S+))?$`,
)

// ParseTurn parses the output of String.
func ParseTurn(text string) (Turn, error) {
	parts := turnText.FindStringSubmatch(text)
	if parts == nil {
		return Turn{}, fmt.Errorf(
			"%q is no turn: want \"position N; place reserved in DOMAIN; to start at TIME\"",
			text,
		)
	}
	position, err := strconv.Atoi(parts[1])
	if err != nil {
		return Turn{}, fmt.Errorf("%q is no turn: %w", text, err)
	}
	return Turn{
		Position:  position,
		Reserved:  parts[3],
		Open:      parts[2] == placeIn,
		Start:     parts[5],
		Estimated: parts[4] == estimatedAt,
	}, nil
}
