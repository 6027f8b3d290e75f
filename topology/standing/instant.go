package standing

import "regexp"

// Until is the clause of a message that says when another's place ends. at is an instant as RFC 3339 has it, in UTC.
func Until(at string) string { return " until " + at }

// FreeAt is the clause of a message that says when a reserved place is free. at is an instant as RFC 3339 has it, in UTC; one that is not
// firm rests on guesses about run times.
func FreeAt(at string, firm bool) string {
	if firm {
		return ", expected to be free at " + at
	}
	return ", estimated to be free at " + at
}

// instantText is what Until and FreeAt return.
var instantText = regexp.MustCompile(
	`(?: until|, (?:expected|estimated) to be free at) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`,
)

// WithoutInstants returns a message without such clauses. An estimate shifts from minute to minute, and what else the message says stays.
func WithoutInstants(message string) string { return instantText.ReplaceAllString(message, "") }
