package policy

import (
	"fmt"
	"testing"
)

func TestParseMember(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1 0 0", "10.0.0.1:8080": "10.0.0.1 8080 0", "10.0.0.1:8080@2": "10.0.0.1 8080 2", "10.0.0.1@7": "10.0.0.1 0 7",
		"fd00::1": "fd00::1 0 0", "[fd00::1]:80": "fd00::1 80 0", "[fd00::1]": "fd00::1 0 0",
		"": "", "x": "", "10.0.0.1:x": "", "10.0.0.1:80@0": "", "10.0.0.1:80@": "", "10.0.0.1:70000": "", "10.0.0.1@99999": "",
	} {
		m, err := parseMember(text)
		got := ""
		if err == nil {
			got = fmt.Sprint(m.Address, " ", m.Port, " ", m.Weight)
		}
		if got != want {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
}
