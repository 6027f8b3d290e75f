// Package explain says in words, and as JSON, what package whatif found out about the scheduler: why a gang waits and until when, where it
// would go, what a drain would do. Text begins with the answer; evidence follows, in the sentences of the decision core.
package explain
