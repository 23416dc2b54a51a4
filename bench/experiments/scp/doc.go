// Package scp repeats the measurements of the SDN-SCP paper, which puts the
// service communication proxy of a 5G core into the switches: throughput and
// latency beside agents (Figs. 4-6), what packets cost that go through the
// controller (Fig. 7), and how many of them do (Fig. 8); and tries faults. All
// network functions are simulated, by weft nf or in this process.
//
// Only cmd/weft and tests import it.
package scp

import (
	"embed"
	"fmt"
	"strconv"

	"github.com/weft-sdn/weft/bench/experiments"
)

// All returns the experiments.
func All() []experiments.Experiment {
	return []experiments.Experiment{throughput(), latency(), forwarded(), share(), faultExperiment()}
}

const paper = "SDN-SCP, an SDN application in place of the service communication proxy of a 5G core (section IV)"

//go:embed paper.csv
var files embed.FS

// paperValues is what its figures show, as far as its text has numbers.
var paperValues = experiments.ReadPaper(files, "paper.csv")

// written writes a figure into a sample.
func written(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }

// counted writes a count into a sample.
func counted(n int) string { return fmt.Sprint(n) }
