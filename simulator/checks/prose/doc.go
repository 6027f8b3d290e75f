// Package prose checks the language of comments, of messages and of pages: the words that a Kubernetes engineer has to
// read twice, sentences that postpone their noun, and references to files that are not in the repository.
package prose
