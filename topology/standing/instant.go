package standing

import "regexp"

// Until is the clause of a message that says when another's place ends. at is an instant as RFC 3339 has it, in UTC.
func Until(at string) string { return " until " + at }

// ExpectedAt is the clause of a message that says when a reserved place is free. at is an instant as RFC 3339 has it, in UTC.
func ExpectedAt(at string) string { return ", expected to be free at " + at }

// EstimatedAt is ExpectedAt for an instant that rests on guesses about run times.
func EstimatedAt(at string) string { return ", estimated to be free at " + at }

// StartsBetween is the clause of a message that says when a gang starts, as far as earlier waits tell: eight in ten between two instants, and half
// by another. They are as RFC 3339 has them, in UTC.
func StartsBetween(low, high, middle string) string {
	return "; eight in ten such waits end between " + low + " and " + high + ", half by " + middle
}

// startsText is what StartsBetween returns.
var startsText = regexp.MustCompile(`; eight in ten such waits end between (\S+Z) and (\S+Z), half by (\S+Z)`)

// StartsIn returns the instants of such a clause in a message; false for a message without one.
func StartsIn(message string) (low, high, middle string, ok bool) {
	parts := startsText.FindStringSubmatch(message)
	if parts == nil {
		return "", "", "", false
	}
	return parts[1], parts[2], parts[3], true
}

// InstantIn returns the first instant of such a clause in a message, as RFC 3339 has it; "" for a message without one.
func InstantIn(message string) string {
	clause := instantText.FindString(message)
	if clause == "" {
		return ""
	}
	return clause[len(clause)-len("2006-01-02T15:04:05Z"):]
}

// instantText is what these functions return.
var instantText = regexp.MustCompile(
	`(?: until|, (?:expected|estimated) to be free at) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`,
)

// WithoutInstants returns a message without such clauses. An estimate shifts from minute to minute, and what else the message says stays.
func WithoutInstants(message string) string {
	return instantText.ReplaceAllString(startsText.ReplaceAllString(message, ""), "")
}
