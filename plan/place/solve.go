package place

// Options are how much is tried. The zero value is right for most.
type Options struct {
	// Seed of all that is chosen at random; the same instance, seed and numbers
	// below give the same placement, however many CPUs there are.
	Seed uint64
	// Runs are independent searches, of which the best counts; 0: by the size.
	Runs int
	// Steps are those of each run, moves and swaps tried; 0: by the size.
	Steps int
	// Workers are how many runs go on at a time; 0: as many as there are CPUs.
	// It does not change the result.
	Workers int
	// Conflicts is the budget of the exact solver; 0: ExactConflicts for up to
	// ExactShards shards and nothing above; -1: it is not asked.
	Conflicts int
	// Progress, if set, is told what is done; not concurrently.
	Progress func(Progress)
}

// Progress is how far Solve is.
type Progress struct {
	Phase    string // such as "search" or "proof"
	Done, Of int    // of the phase; Of is 0 if it is not known
	Cost     float64
	Feasible bool
}

// Solution is a placement that keeps all constraints.
type Solution struct {
	Server    []int   // where each shard runs
	Cost      float64 // Latency + Migration, as Check has it
	Latency   float64 // eq. 4
	Migration float64
	// Bound is what every placement costs at least. Cost less Bound is the gap;
	// Proven if that is nothing.
	Bound  float64
	Proven bool
	// By says where Bound is from.
	By string
}

// Gap is how far Cost may be above the optimum, as a share of Cost.
func (s *Solution) Gap() float64 {
	if s.Proven || s.Cost <= 0 {
		return 0
	}
	return (s.Cost - s.Bound) / s.Cost
}
