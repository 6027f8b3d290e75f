package standing

import "regexp"

// Until is the clause of a message with the end of another gang's place. at is an instant as RFC 3339 has it, in UTC.
func Until(at string) string { return " until " + at }

// ExpectedAt is the clause of a message with the instant at which a reserved place is free. at is an instant as RFC
// 3339 has it, in UTC.
func ExpectedAt(at string) string { return ", expected to be free at " + at }

// EstimatedAt is ExpectedAt for an instant that rests on guesses about run times.
func EstimatedAt(at string) string { return ", estimated to be free at " + at }

// Start is the forecast start of a gang, by earlier waits. The instants are as RFC 3339 has them, in UTC.
type Start struct {
	// Low and High are the instants between which eight in ten such waits end, Middle is the one by which half of them
	// do.
	Low, Middle, High string
}

// String returns the clause of a message for the interval.
func (s Start) String() string {
	return "; eight in ten such waits end between " + s.Low + " and " + s.High + ", half by " + s.Middle
}

// startsText matches the output of Start.String.
var startsText = regexp.MustCompile(`; eight in ten such waits end between (\S+Z) and (\S+Z), half by (\S+Z)`)

// StartIn parses such a clause in a message; false for a message without one.
func StartIn(message string) (Start, bool) {
	parts := startsText.FindStringSubmatch(message)
	if parts == nil {
		return Start{}, false
	}
	return Start{Low: parts[1], High: parts[2], Middle: parts[3]}, true
}

// InstantIn returns the first instant of such a clause in a message, as RFC 3339 has it; "" for a message without one.
func InstantIn(message string) string {
	clause := instantText.FindString(message)
	if clause == "" {
		return ""
	}
	return clause[len(clause)-len("2006-01-02T15:04:05Z"):]
}

// instantText matches the output of these functions.
var instantText = regexp.MustCompile(
	`(?: until|, (?:expected|estimated) to be free at) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`,
)

// WithoutInstants returns a message without such clauses. Estimates shift from minute to minute; the rest of the
// message does not.
func WithoutInstants(message string) string {
	return instantText.ReplaceAllString(startsText.ReplaceAllString(message, ""), "")
}
