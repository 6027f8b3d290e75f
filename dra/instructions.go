package dra

import "regexp/syntax"

// instructions returns an upper bound of the length of the program of a regular expression, to which its time is
// proportional. It does not write the repetitions out: there are expressions of ten characters with a million.
func instructions(pattern string) int {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 1 // never runs
	}
	return 2 + instructionsOf(tree)
}

func instructionsOf(tree *syntax.Regexp) int {
	n := 2
	for _, sub := range tree.Sub {
		n += instructionsOf(sub)
	}
	switch tree.Op {
	case syntax.OpLiteral:
		return max(len(tree.Rune), 1)
	case syntax.OpRepeat:
		return n * max(tree.Min+1, tree.Max)
	case syntax.OpConcat:
		return n - 2
	default:
		return n
	}
}
