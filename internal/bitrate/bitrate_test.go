package bitrate

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{
		"100M": 1e8, "100mbit": 1e8, "100Mbit": 1e8, " 100 mbit ": 1e8, "2.5g": 2.5e9, "1.5gbit": 1.5e9, "64K": 64e3, "8kbit": 8e3, "9600bit": 9600,
		"1T": 1e12, "1tbit": 1e12, "0K": 0, "1.001M": 1_001_000, "1e3k": 1e6,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "7", "G", "mbit", "cheese", "-1G", "-1bit", "NaNM", "infM", "1e400M", "0x10M", "1_000M", "10Gb", "10GB", "5mbps", "5ms", "1 0M"} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), "100M") || !strings.Contains(err.Error(), "100mbit") {
			t.Errorf("%q: %v, %v; want an error that names both forms", text, got, err)
		}
	}
}
