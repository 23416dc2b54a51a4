package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Addresses in a 5G core follow from the name of a host alone.
func TestCore5GAddresses(t *testing.T) {
	for _, n := range []int{1, 3, 254} {
		topo, err := Core5G(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(topo); err != nil || len(topo.Hosts) != 2+5*n || topo.Name != "5gc" {
			t.Errorf("%d: %s, %d hosts, %v", n, topo.Name, len(topo.Hosts), err)
		}
		for name, want := range map[string]string{
			"nrf":                   "10.0.0.1/16 fd00::1/64 false [nrf: weft nf nrf]",
			"scp":                   "10.0.0.2/16 fd00::2/64 true []",
			"amf1":                  "10.0.1.1/16 fd00::1:1/64 false [amf: weft nf amf --nrf http://10.0.0.1:7777]",
			fmt.Sprintf("pcf%d", n): fmt.Sprintf("10.0.5.%d/16 fd00::5:%x/64 false [pcf: weft nf pcf --nrf http://10.0.0.1:7777]", n, n),
		} {
			h, ok := topo.HostByName(name)
			if !ok {
				t.Errorf("%d: there is no %s", n, name)
				continue
			}
			run := []string{}
			for _, p := range h.Run {
				run = append(run, p.Name+": "+p.Command)
			}
			if got := fmt.Sprint(h.IPv4, " ", h.IPv6, " ", h.Manage, " ", run); got != want {
				t.Errorf("%d: %s is\n%s, want\n%s", n, name, got, want)
			}
		}
	}
}

func TestForms(t *testing.T) {
	for _, f := range Forms() {
		if !strings.Contains(SpecForms, f) || strings.HasPrefix(f, "FILE") {
			t.Errorf("%s is no form", f)
		}
	}
	if forms := Forms(); !slices.Contains(forms, "5gc:") || !slices.Contains(forms, "demo") {
		t.Errorf("forms %q", forms)
	}
}

// Every form that has numbers has an example, which is a topology.
func TestExamples(t *testing.T) {
	for _, f := range Forms() {
		kind, _, numbers := strings.Cut(f, ":")
		if !numbers || slices.Contains([]string{"graphml", "gml", "t3d"}, kind) {
			continue
		}
		if _, example := formOf(kind); !IsForm(kind) || !strings.HasPrefix(example, f) {
			t.Errorf("%s: %s", kind, example)
		} else if _, err := Resolve(example); err != nil {
			t.Error(err)
		}
	}
}
