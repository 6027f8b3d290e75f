package gangpermit

// Abandon and Spare are what the watch for incomplete gangs calls.
var (
	Abandon = (*GangPermit).abandon
	Spare   = (*GangPermit).spare
)
