package faults

import "slices"

// Shrink makes a scene smaller as long as it still shows what it is to show, as shows says: it takes away faults and jobs, one after another, until none
// can be missed. What is left happens as before, since what is drawn for one thing does not depend on others.
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
