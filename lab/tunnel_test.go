package lab

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/topology"
)

const tunnelled = `name: part
controller: none
switches: [{name: s1}]
hosts:
  - {name: h1, switch: s1}
  - {name: h3, switch: s9, port: 4, tunnel: {remote: 192.0.2.2, vni: 12}}
links:
  - {a: s1, b: s2, b_port: 3, delay: 5ms, tunnel: {remote: 192.0.2.2, local: 192.0.2.1, vni: 11, port: 4790}}
  - {a: s1, b: h7, mtu: 1500, tunnel: {remote: "192.0.2.3", vni: 13}}
names: [{name: h7, addresses: [10.0.0.7, "fd00::7"]}]
`

// TestTunnelFile: a file with tunnels reads as it is written, and its links have
// names of both ends.
func TestTunnelFile(t *testing.T) {
	topo, err := topology.Parse("part.yaml", []byte(tunnelled))
	if err != nil {
		t.Fatal(err)
	}
	text, err := topo.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := topology.Parse("part.yaml", text)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if d := topology.Compare(topo, again); !d.None() {
		t.Errorf("%+v", d)
	}
	if k := again.Links[0].Tunnel; k == nil || k.VNI != 11 || k.Port != 4790 || k.Local != netip.MustParseAddr("192.0.2.1") || again.Hosts[1].Tunnel == nil || len(again.Names) != 1 {
		t.Errorf("%+v", again)
	}
	var got []string
	for _, k := range GraphOf(topo).Links {
		got = append(got, k.A+"-"+k.B+" "+k.Made)
	}
	if want := "s1:1-h1 veth, s9:4-h3 vxlan, s1:2-s2:3 vxlan, s1:3-h7 vxlan"; strings.Join(got, ", ") != want {
		t.Errorf("links %q; want %q", got, want)
	}
	var svg strings.Builder
	if err := GraphOf(topo).SVG(&svg); err != nil || !strings.Contains(svg.String(), "s9:4 to h3") {
		t.Errorf("%v: %s", err, &svg)
	}
}

func TestTunnelRefused(t *testing.T) {
	for _, test := range [][3]string{
		{"vni: 13", "vni: 11", "already that of"},
		{"vni: 13", "vni: 0", "number from 1"},
		{"b: h7", "b: h1", "h1 is in this lab"},
		{"a: s1, b: s2", "a: s8, b: s2", "unknown switch"},
		{"switch: s9", "switch: s1", `"s1" is in this lab`},
		{"local: 192.0.2.1", `local: "fd00::1"`, "cannot go from"},
		{"remote: 192.0.2.2, local", "remote: 224.0.0.1, local", "address of a machine"},
		{"{name: s1}", "{name: s1, kind: router}", "has its links on its machine"},
	} {
		text := strings.ReplaceAll(tunnelled, test[0], test[1])
		if text == tunnelled {
			t.Fatal(test)
		}
		if _, err := topology.Parse("part.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), test[2]) {
			t.Errorf("%v: %v", test, err)
		}
	}
}
