package cli

import "testing"

func TestBandwidth(t *testing.T) {
	for text, want := range map[string]Bandwidth{"10G": 10_000_000, "2.5g": 2_500_000, "100M": 100_000, "64K": 64, "7": 7, "0": 0, "1000T": 1_000_000_000_000, "100mbit": 100_000, "2.5gbit": 2_500_000, "1.001M": 1001, "10 G": 10_000_000} {
		var r Bandwidth
		if err := r.Set(text); err != nil || r != want {
			t.Errorf("%s: %d, %v, want %d", text, r, err, want)
		}
		again := r.String()
		var s Bandwidth
		if err := s.Set(again); err != nil || s != r {
			t.Errorf("%s is written %s, read as %d (%v)", text, again, s, err)
		}
	}
	for _, text := range []string{"", "G", "-1", "-1G", "1001T", "NaN", "inf", "1e400", "0.5", "0.0001M", "0x10", "5bit", "10Gb", "1_000"} {
		var r Bandwidth
		if err := r.Set(text); err == nil {
			t.Errorf("%q is read as %d", text, r)
		}
	}
}
