// Package nf repeats the measurements of the paper on monolithic and microservice
// network functions: what its equations give (Fig. 5), beside a simulation of the
// same function; and how a worker is scaled under load by such a model.
//
// Only cmd/weft imports it.
package nf

import "github.com/weft-sdn/weft/experiments"

// All returns the experiments.
func All() []experiments.Experiment { return []experiments.Experiment{model(), autoscale()} }

const paper = "On monolithic and microservice deployment of network functions (section IV)"
