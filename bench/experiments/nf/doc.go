// Package nf repeats the measurements of the paper on monolithic and microservice
// network functions: what its equations give (Fig. 5), beside a simulation of the
// same function; delays and overheads of real packets (Figs. 3, 4, 6 to 8); and how a worker is
// scaled under load by such a model.
//
// Only cmd/weft imports it.
package nf

import (
	"embed"

	"github.com/weft-sdn/weft/bench/experiments"
)

// All returns the experiments.
func All() []experiments.Experiment {
	return []experiments.Experiment{model(), delay(), utilisation(), autoscale()}
}

const paper = "On monolithic and microservice deployment of network functions (section IV)"

//go:embed paper.csv
var files embed.FS

// paperValues is what its figures show, as far as its text has numbers.
var paperValues = experiments.ReadPaper(files, "paper.csv")
