package prose

import "regexp"

// rule is one phrase that is not used, and its replacement.
type rule struct {
	pattern *regexp.Regexp
	mend    string
	// messages extends the rule from comments and pages to string literals.
	messages bool
	// comments limits the rule to comments of Go: a page may say what another page shows.
	comments bool
}

// rules returns the rules in the order in which a finding of a place is chosen.
func rules() []rule {
	phrase := func(words, mend string) rule {
		return rule{pattern: regexp.MustCompile(`(?i)\b(?:` + words + `)\b`), mend: mend}
	}
	message := func(words, mend string) rule {
		r := phrase(words, mend)
		r.messages = true
		return r
	}
	return []rule{
		phrase(`(?:is|are|was|were) (?:what|who|whose|whom|how|where|when|why|whether)`,
			"begin with the noun, or with a verb in the third person"),
		phrase(`(?:says|tells) whether`, "write reports whether"),
		{
			pattern: regexp.MustCompile(`(?i)\b(?:says|tells|returns|knows|reads|decides) (?:what|who|whose|whom)\b`),
			mend:    "name it: returns the cost of a gang, names the evicting component", comments: true,
		},
		message(`nobody|somebody|anybody`, "name the object: gang, job, pod, node, claim, device, user"),
		message(`by\s+chance`, "write randomly generated, or drawn from the seed"),
		message(`be\s+it`, "write whether, or list the cases"),
		phrase(`asked about`, "write evaluated, or requested"),
		{
			pattern: regexp.MustCompile(`(?i)\bas (?:it|they) (?:is|are)(?:[,.;:)]|$)`),
			mend:    "name the state: unchanged, current, actual",
		},
		phrase(`of which`, "write whose, or a sentence of its own"),
		phrase(`(?:is|are|be|being|was|were) let in`, "write admitted"),
		phrase(`\.\./shared\S*|reference/[a-z-]+\.md|(?:this )?issue \d+`,
			"say the fact here or in docs: the reference is not in the repository"),
	}
}
