package gangpermit

// Abandon and Spare are what the watch for incomplete gangs calls.
//
//nolint:gochecknoglobals // method expressions, for tests
var (
	Abandon = (*GangPermit).abandon
	Spare   = (*GangPermit).spare
)
