package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// Bandwidth is the value of a flag that is a bandwidth: kilobits per second.
type Bandwidth uint64

// rateUnits are the kilobits per second of units, the largest first.
var rateUnits = []struct {
	letter string
	kbps   uint64
}{{"T", 1_000_000_000}, {"G", 1_000_000}, {"M", 1000}, {"K", 1}}

// String returns the rate as a whole number of the largest unit that allows it: "10G".
func (r *Bandwidth) String() string {
	for _, u := range rateUnits {
		if *r > 0 && uint64(*r)%u.kbps == 0 {
			return strconv.FormatUint(uint64(*r)/u.kbps, 10) + u.letter
		}
	}
	return "0"
}

// Set reads a rate: a number of kbit/s, or one with K, M, G or T behind it (bit/s).
func (r *Bandwidth) Set(text string) error {
	unit := uint64(1)
	number := text
	for _, u := range rateUnits {
		if n, ok := strings.CutSuffix(strings.ToUpper(text), u.letter); ok {
			number, unit = n, u.kbps
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	kbps := f * float64(unit)
	if err != nil || strings.ContainsAny(number, "xXpPiInN_") || !(kbps >= 0) || kbps > 1e12 || kbps != float64(uint64(kbps)) {
		return fmt.Errorf("want a rate in whole kbit/s, at most 1000T, such as 10G, 2.5G, 100M, 64K, or kbit/s as a plain number")
	}
	*r = Bandwidth(kbps)
	return nil
}

// Type returns the name of the flag's value.
func (r *Bandwidth) Type() string { return "rate" }
