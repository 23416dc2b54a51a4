// Package oshi repeats the measurements of the OSHI paper, of hybrid IP/SDN nodes:
// what forwarding costs a node (Figs. 14 and 18), links over tunnels (Fig. 15) and
// pseudowires (Fig. 21), what the caches of Open vSwitch save (section VII.E); and
// what the paper leaves open: what its random branching points cost, what its
// heuristic for flow assignment reaches, and how long a customer is without service when a link fails.
//
// Only cmd/weft imports it.
package oshi

import "github.com/weft-sdn/weft/bench/experiments"

// All returns the experiments.
func All() []experiments.Experiment {
	return []experiments.Experiment{forwarding(), overlay(), pseudowire(), cache(), steiner(), engineering(), restoration()}
}
