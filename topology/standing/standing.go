// Package standing is what the scheduler says of a gang to those who show it to people: where it is, or where it stands in the queue. It
// is said in conditions of the PodGroup, whose messages have a fixed form: what String prints, Parse reads. Only the scheduler writes a
// PodGroup's status; annotations could be anybody's.
package standing

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The conditions of a PodGroup.
const (
	// Waiting is True while the gang waits because of what the message says; its reasons are in package explanation.
	Waiting = "lockstep.dev/Waiting"
	// Placed is True while the gang has its nodes. The message is a Place.
	Placed = "lockstep.dev/Placed"
	// Queued is True while the gang waits. The message is a Turn.
	Queued = "lockstep.dev/Queued"
)

// Place is where a gang is. The zero Place is one that the scheduler's filters chose: nothing is known of it.
type Place struct {
	// Nodes is how many nodes it uses; at least 1.
	Nodes int
	// Domain is the smallest domain that holds them all, as topology.Domain prints it; "cluster" if only the whole fleet does.
	Domain string
	// Quality is a proven lower bound of what the best place for the gang costs on the fleet as it was, divided by what this place
	// costs: from 0.01 to 1, and 1 for one that cannot be better.
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

// placeText is what Place.String prints.
var placeText = regexp.MustCompile(`^(\d+) nodes in (\S+), quality (\d\.\d\d)$`)

// ParsePlace reads what String printed.
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

// Turn is where a gang stands in the queue.
type Turn struct {
	// Position is 1 for the first that waits.
	Position int
	// Reserved is the domain in which a place is reserved for the gang; empty without a reservation.
	Reserved string
	// Open says that others may use the place: too many accelerators would idle until it is free.
	Open bool
	// Start is when the place should be free, as RFC 3339 has it; empty if that is not known.
	Start string
	// Estimated says that Start rests on guesses about run times.
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

// turnText is what Turn.String prints.
var turnText = regexp.MustCompile(
	`^position (\d+)(?:; (` + placeIn + `|` + reservedIn + `)([^;]+))?(?:; (` + startAt + `|` + estimatedAt + `)(\S+))?$`,
)

// ParseTurn reads what String printed.
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
