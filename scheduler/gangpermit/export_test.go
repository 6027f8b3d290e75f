package gangpermit

// Abandon and Spare are called by the watch for incomplete gangs.
var (
	Abandon = (*GangPermit).abandon
	Spare   = (*GangPermit).spare
)
