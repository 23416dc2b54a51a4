package policy

import (
	"fmt"
	"testing"

	"github.com/weft-sdn/weft/api"
)

func TestParseMember(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1:8080@2/3": "10.0.0.1 8080 2 3", "10.0.0.1@65535/65535": "10.0.0.1 0 65535 65535",
		"10.0.0.1@1/": "", "10.0.0.1@1/65536": "", "10.0.0.1@/1": "",
		"10.0.0.1": "10.0.0.1 0 0", "10.0.0.1:8080": "10.0.0.1 8080 0", "10.0.0.1:8080@2": "10.0.0.1 8080 2", "10.0.0.1@7": "10.0.0.1 0 7",
		"fd00::1": "fd00::1 0 0", "[fd00::1]:80": "fd00::1 80 0", "[fd00::1]": "fd00::1 0 0",
		"": "", "x": "", "10.0.0.1:x": "", "10.0.0.1:80@0": "", "10.0.0.1:80@": "", "10.0.0.1:70000": "", "10.0.0.1@99999": "",
	} {
		m, err := parseMember(text)
		got := ""
		if err == nil {
			if got = fmt.Sprint(m.Address, " ", m.Port, " ", m.Weight); m.Priority != 0 {
				got += fmt.Sprint(" ", m.Priority)
			}
		}
		if got != want {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
}

// TestVipsOfServices: VIPs of services are shown, and files do not speak of them.
func TestVipsOfServices(t *testing.T) {
	for owner, want := range map[string]bool{"": false, "operator": false, "scp": true} {
		v := &api.Vip{Name: "web", Owner: owner}
		if isOwned(v) != want {
			t.Errorf("owner %q: foreign %v", owner, !want)
		}
		if tidyVip(v); isOwned(v) != want {
			t.Errorf("owner %q: foreign %v once tidied", owner, !want)
		}
	}
}
