package trace

import (
	"fmt"
	"time"
)

// The numbers of Service.
const (
	serviceRuns  = 10 * 24 * time.Hour
	serviceNodes = 64
	serviceAfter = time.Minute
	serviceJobs  = 2000
	serviceHours = 48
	serviceTeams = 20
)

// Service is made for a fleet of 64 nodes of eight GPUs. One job of one GPU runs for ten days, and its owner states no
// deadline; a gang of all 64 nodes arrives a minute later; then 2,000 jobs of one node and 30 to 90 minutes arrive
// within two days, of twenty tenants, and each states its run time exactly. A scheduler that reserves the place of the
// gang for an unknown end idles 511 of 512 GPUs for ten days.
func Service(seed uint64) Trace {
	r := chance(seed, streamService)
	t := Trace{
		Name: "service",
		Source: fmt.Sprintf(
			"made for %d nodes of %d GPUs: a job of one GPU without a deadline for 10 days, a gang of %d nodes, and %d jobs of one "+
				"node within %d h",
			serviceNodes,
			gpusPerNode,
			serviceNodes,
			serviceJobs,
			serviceHours,
		),
		Synthetic: true,
		Jobs: []Job{
			{ID: "service", Tenant: "service", Duration: serviceRuns, Podsets: gang(1)},
			{
				ID: "gang", Tenant: "large", Submit: serviceAfter, Duration: time.Hour, Estimate: time.Hour,
				Podsets: gang(serviceNodes * gpusPerNode),
			},
		},
	}
	for i := range serviceJobs {
		runs := time.Duration(30*60+r.Int64N(60*60)) * time.Second
		t.Jobs = append(t.Jobs, Job{
			ID: fmt.Sprintf("small-%06d", i+1), Tenant: fmt.Sprintf("team-%02d", r.IntN(serviceTeams)+1),
			Submit:   2*serviceAfter + time.Duration(r.Int64N(serviceHours*3600))*time.Second,
			Duration: runs, Estimate: runs, Podsets: gang(gpusPerNode),
		})
	}
	return t.sorted()
}
