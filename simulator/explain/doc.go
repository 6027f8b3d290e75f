// Package explain describes in words, and as JSON, the findings of package whatif about the scheduler: why a gang waits
// and until when, its expected place, the effect of a drain. Text begins with the answer; evidence follows, in the
// sentences of the decision core.
package explain
