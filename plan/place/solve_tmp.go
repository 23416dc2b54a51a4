package place

import "context"

// TmpHeuristic is for tuning.
func TmpHeuristic(in *Instance, o Options) ([]int, float64, float64) {
	p := compile(in)
	r, _ := heuristic(context.Background(), p, o)
	if o.Conflicts > 0 {
		b, bound, proven := p.exact(context.Background(), r, o.Conflicts, o.Progress)
		println("exact", b.cost, bound, proven)
		r = b
	}
	return p.shards(r.at), r.cost, r.violation
}
