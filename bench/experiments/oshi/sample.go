package oshi

import "strconv"

const paper = "OSHI, hybrid IP/SDN networking (section VII)"

// written writes a figure into a sample.
func written(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
