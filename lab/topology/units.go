package topology

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/bitrate"
)

// Rate is a link's rate in bit/s.
type Rate uint64

var rateUnits = []struct {
	name string
	bits float64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// ParseRate reads a rate such as "100mbit", in the units of tc(8), or "100M".
func ParseRate(s string) (Rate, error) {
	bits, err := bitrate.Parse(s)
	if err != nil {
		return 0, err
	}
	if bits < 8000 || bits > 1e12 {
		return 0, fmt.Errorf("%q: want a rate from 8K to 1T (8kbit to 1tbit), such as 100M or 100mbit", s)
	}
	return Rate(bits), nil
}

func (r Rate) String() string {
	for _, u := range rateUnits {
		if f := float64(r) / u.bits; f >= 1 {
			return strconv.FormatFloat(f, 'f', -1, 64) + u.name
		}
	}
	return "0bit"
}

// MarshalText writes the rate as ParseRate reads it.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a rate as ParseRate does.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRate(string(b))
	return err
}

// Percent is a share of 100.
type Percent float64

// ParsePercent reads a percentage such as "1%" or "0.5%".
func ParsePercent(s string) (Percent, error) {
	n, ok := strings.CutSuffix(strings.TrimSpace(s), "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
	if !ok || err != nil || !(f >= 0 && f <= 100) {
		return 0, fmt.Errorf("%q is not a percentage: write a number from 0%% to 100%%, such as 1%%", s)
	}
	return Percent(f), nil
}

func (p Percent) String() string { return strconv.FormatFloat(float64(p), 'f', -1, 64) + "%" }

// MarshalText writes the percentage as ParsePercent reads it.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a percentage as ParsePercent does.
func (p *Percent) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePercent(string(b))
	return err
}

// Delay is a link's delay or jitter.
type Delay time.Duration

const maxDelay = Delay(10 * time.Second)

// ParseDelay reads a delay such as "5ms" or "200us", at most 10 s.
func ParseDelay(s string) (Delay, error) {
	v, err := time.ParseDuration(strings.TrimSpace(s))
	d := Delay(v)
	if err != nil || d < 0 || d > maxDelay {
		return 0, fmt.Errorf("%q is not a delay: write a number and us, ms or s, such as 5ms, at most 10s", s)
	}
	return d, nil
}

func (d Delay) String() string { return time.Duration(d).String() }

// MarshalText writes the delay as ParseDelay reads it.
func (d Delay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a delay as ParseDelay does.
func (d *Delay) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDelay(string(b))
	return err
}

// DPID is an OpenFlow datapath identifier (OpenFlow 1.3.5 section 7.3.1).
type DPID uint64

// ParseDPID reads a decimal number, 0x and hexadecimal digits, sixteen
// hexadecimal digits, or those in pairs with colons.
func ParseDPID(s string) (DPID, error) {
	t := strings.TrimSpace(s)
	base := 10
	switch {
	case strings.Contains(t, ":"):
		t, base = strings.ReplaceAll(t, ":", ""), 16
		if len(t) != 16 {
			base = 0
		}
	case strings.HasPrefix(t, "0x"), strings.HasPrefix(t, "0X"):
		t, base = t[2:], 16
	case len(t) == 16:
		base = 16
	}
	if base != 0 {
		if n, err := strconv.ParseUint(t, base, 64); err == nil && n != 0 {
			return DPID(n), nil
		}
	}
	return 0, fmt.Errorf("%q is not a datapath id: write a number from 1 such as 10, or hexadecimal such as 0xa or 000000000000000a", s)
}

// String writes sixteen hexadecimal digits, as Open vSwitch does.
func (d DPID) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// MarshalText writes sixteen hexadecimal digits.
func (d DPID) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a datapath id as ParseDPID does.
func (d *DPID) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDPID(string(b))
	return err
}
