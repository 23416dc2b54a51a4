// Package bitrate reads rates as people write them. Whoever reads a rate imports it.
package bitrate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are the bit/s of units: those of tc(8), and the letters of switches' manuals. A
// unit stands before those that it ends with.
var units = []struct {
	name string
	bits float64
}{
	{"tbit", 1e12}, {"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1},
	{"t", 1e12}, {"g", 1e9}, {"m", 1e6}, {"k", 1e3},
}

// Parse reads a rate such as 100mbit or 100M, in either case, and returns it in bit/s,
// rounded. A number without a unit is an error.
func Parse(text string) (float64, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	for _, u := range units {
		number, ok := strings.CutSuffix(t, u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if bits := math.Round(f * u.bits); err == nil && !strings.ContainsAny(number, "xpin_") && bits >= 0 && !math.IsInf(bits, 0) {
			return bits, nil
		}
		break
	}
	return 0, fmt.Errorf("%q: want a rate: %s", text, Form)
}

// Form says how a rate is written.
const Form = "a number with K, M, G or T (bit/s), or with bit, kbit, mbit, gbit or tbit, such as 100M, 2.5G or 100mbit"
