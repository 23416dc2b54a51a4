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

// percentAsFactor returns 1.2 where the paper says that something is 20 percent more.
func percentAsFactor(figure, series, x string) float64 {
	return 1 + paperValues.Number(figure, series, x)/100
}
