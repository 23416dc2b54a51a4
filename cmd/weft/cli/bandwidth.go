package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/internal/bitrate"
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

// Set reads a rate as bitrate.Parse does, or a plain number of kbit/s.
func (r *Bandwidth) Set(text string) error {
	unit := text
	if strings.Trim(text, ".0123456789") == "" {
		unit += "K"
	}
	bits, err := bitrate.Parse(unit)
	kbps := bits / 1000
	if err != nil || kbps > 1e12 || kbps != math.Trunc(kbps) {
		return errors.New("want a rate in whole kbit/s, at most 1000T: " + bitrate.Form + "; a plain number is kbit/s")
	}
	*r = Bandwidth(kbps)
	return nil
}

// Type returns the name of the flag's value.
func (r *Bandwidth) Type() string { return "rate" }
