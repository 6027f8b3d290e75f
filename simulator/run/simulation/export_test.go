package simulation

// BuiltFrom sets the commit from which the binary was built: tests are built from none.
func (in *Input) BuiltFrom(commit string) { in.commit = commit }
