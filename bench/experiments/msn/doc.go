// Package msn repeats the measurements of the MSN paper, a microservices-based
// SDN controller made of Ryu: the latency of first packets and rule updates by
// transport (Fig. 9), what a fault of the routing service does (Fig. 10), and
// replicas of services and of the whole controller (Figs. 13-15).
//
// Only cmd/weft imports it.
package msn

import (
	"embed"

	"github.com/weft-sdn/weft/bench/experiments"
)

// All returns the experiments.
func All() []experiments.Experiment {
	return []experiments.Experiment{firstPacket(), resilience(), scaling()}
}

const paper = "MSN, a microservices-based SDN controller (section 4)"

//go:embed paper.csv
var files embed.FS

// paperValues is what its figures show, as far as its text has numbers.
var paperValues = experiments.ReadPaper(files, "paper.csv")
