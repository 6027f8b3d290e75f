package redact

import "regexp"

// credential is a pattern of a credential in free text; its replacement may retain some of its groups.
type credential struct {
	pattern *regexp.Regexp
	by      string
}

// credentials are looked for in this order.
var credentials = []credential{ //nolint:gochecknoglobals // compiled once
	// PEM blocks of private keys; a block that is cut off ends with the text.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), removed},
	// JSON Web Tokens, such as those of ServiceAccounts.
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`), removed},
	// HTTP authorization.
	{regexp.MustCompile(`(?i)\b(bearer|basic)(\s+)[A-Za-z0-9+/_.~=-]{8,}`), "$1$2" + removed},
	// The user and password of a URL, and the query of one that has a signature.
	{regexp.MustCompile(`://[^\s/@"']+@`), "://" + removed + "@"},
	{regexp.MustCompile(`\?[^\s"']*(?i:signature|sig|token|credential)=[^\s"']*`), "?" + removed},
	// Tokens with the prefixes of Hugging Face, GitHub, GitLab, Slack, OpenAI and AWS.
	{regexp.MustCompile(`\b(hf_|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|AKIA|ASIA)[A-Za-z0-9_-]{12,}`), removed},
	// Values that are named so: password=..., "apiKey": "...", --hf-token ....
	{regexp.MustCompile(named + `(["']?\s*[=:]\s*")[^"]*"`), "$1$2" + removed + `"`},
	{regexp.MustCompile(named + `(["']?\s*[=:]\s*["']?|\s+)[^\s"',;&]+`), "$1$2" + removed},
}

// named is a name that says that its value is a credential.
const named = `(?i)([\w.-]*(?:password|passwd|passphrase|secret[_-]?key|secret[_-]?access[_-]?key|api[_-]?key|access[_-]?key|` +
	`auth[_-]?token|[_-]token))`

// Text replaces what looks like a credential in free text: private keys, tokens, authorization headers, passwords of
// URLs, and values with names such as password or api_key. It knows forms, not meanings: a secret in plain words stays.
func Text(text string) string {
	for _, one := range credentials {
		text = one.pattern.ReplaceAllString(text, one.by)
	}
	return text
}
