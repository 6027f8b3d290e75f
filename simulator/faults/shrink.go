package faults

import "slices"

// Shrink reduces a scene for as long as shows holds of it: it removes faults and jobs, one after another, until each
// remaining one is needed. The rest happens as before, since a draw for one thing does not depend on others.
func Shrink(s Scene, shows func(Scene) bool) Scene {
	for smaller := true; smaller; {
		smaller = false
		for i := range slices.Backward(s.Faults) {
			next := s
			next.Faults = slices.Delete(slices.Clone(s.Faults), i, i+1)
			if shows(next) {
				s, smaller = next, true
			}
		}
		for i := range slices.Backward(s.Jobs) {
			next := s
			name := s.Jobs[i].Name
			next.Jobs = slices.Delete(slices.Clone(s.Jobs), i, i+1)
			next.Faults = slices.DeleteFunc(slices.Clone(s.Faults), func(f Fault) bool { return f.Job == name })
			if len(next.Jobs) > 0 && shows(next) {
				s, smaller = next, true
			}
		}
	}
	return s
}
