// Package hydra repeats the measurements of the Hydra paper, which slices a
// controller by functions as well as by partitions of the network: convergence
// by the number of partitions (Fig. 4), demand of applications (Fig. 5 and Table
// 1), throughput (Fig. 6), heartbeats beside load (Figs. 7 to 10), and placement; and a map of
// where slicing by functions pays, which it lacks.
//
// Only cmd/weft imports it.
package hydra

import (
	"embed"

	"github.com/weft-sdn/weft/bench/experiments"
)

// All returns the experiments.
func All() []experiments.Experiment {
	return []experiments.Experiment{convergenceTime(), demands(), heartbeats(), throughput(), placementQuality(), sliceMap()}
}

const paper = "Hydra, functional slicing of SDN controllers (section 5)"

//go:embed paper.csv
var files embed.FS

// paperValues is what its figures show, as far as its text has numbers.
var paperValues = experiments.ReadPaper(files, "paper.csv")
