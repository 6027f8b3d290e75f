package experiment

// BuiltFrom says from which commit the binary was built: tests are built from none.
func (in *Input) BuiltFrom(commit string) { in.commit = commit }
