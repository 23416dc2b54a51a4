package oshi

import (
	"embed"
	"strconv"

	"github.com/weft-sdn/weft/bench/experiments"
)

const paper = "OSHI, hybrid IP/SDN networking (section VII)"

// written writes a figure into a sample.
func written(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }

//go:embed paper.csv
var files embed.FS

// paperValues is what its text has numbers of.
var paperValues = experiments.ReadPaper(files, "paper.csv")

// more returns by what factor something is more than another, of which the paper gives
// percent.
func more(figure, series, x string) float64 { return 1 + paperValues.Number(figure, series, x)/100 }
