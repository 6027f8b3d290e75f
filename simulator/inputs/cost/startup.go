package cost

// Seconds before the first step of a run. Recorded run times count from the start of the pods, so they have the start
// of the framework in them; they lack the assembly of the gang, and the work that a resuming job repeats.
const (
	// binding is that of a single pod, and assembly that of a gang, from its decision until all ranks run: 0.6 to 1.6 s
	// of binding and 2 to 3 s of assembly on real nodes (this project's own measurements, docs/simulator-validation.md
	// and the review of the simulator), rounded.
	binding  = 1
	assembly = 4
	// reload is the further need of a job that resumes: 5 minutes, the restart overhead that Meta assumes for its
	// research clusters (Kokolis et al., HPCA '25, arXiv:2410.21680, section on ETTR). reloadSmall is that of jobs of
	// at most one node of 8, a choice.
	reload      = 300
	reloadSmall = 60
	small       = 8
)

// Assembly returns the seconds between the placement of so many members and the first step of their run.
func (m *Model) Assembly(members int) int64 {
	if m == nil {
		return 0
	}
	if members > 1 {
		return scale(assembly, m.startup)
	}
	return scale(binding, m.startup)
}

// Reload returns the seconds that a job with so many accelerators needs besides to resume from a checkpoint.
func (m *Model) Reload(accelerators int64) int64 {
	switch {
	case m == nil:
		return 0
	case accelerators > small:
		return scale(reload, m.startup)
	}
	return scale(reloadSmall, m.startup)
}

// scale multiplies by thousandths and rounds up.
func scale(n, thousandths int64) int64 { return (n*thousandths + thousand - 1) / thousand }
