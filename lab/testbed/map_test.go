package testbed

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/topology"
)

const three = `
machines:
  - {name: m1, ssh: root@192.0.2.1, cores: 4}
  - {name: m2, ssh: "m2:2222", address: 192.0.2.2, cores: 2, nodes: [s1, h2]}
  - {name: m3, ssh: "[2001:db8::3]:22", address: 192.0.2.3, cores: 2}
controller: tcp:192.0.2.9:6653
`

func parse(t *testing.T, text string) *Machines {
	t.Helper()
	m, err := Parse("machines.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMap: what is placed by hand is there, machines get nodes by their cores, the
// cut is small, and each time the same.
func TestMap(t *testing.T) {
	topo, err := topology.Ring(16, 1)
	if err != nil {
		t.Fatal(err)
	}
	is, err := Map(topo, parse(t, three))
	if err != nil {
		t.Fatal(err)
	}
	if is.MachineOf("s1") != "m2" || is.MachineOf("h1") != "m2" || is.MachineOf("h2") != "m2" || !is.Nodes[0].ByHand || is.Nodes[1].ByHand {
		t.Errorf("by hand: %v", is.Nodes)
	}
	if l := is.Loads; l[0].Nodes < 14 || l[1].Nodes < 6 || l[2].Nodes < 6 || l[0].Nodes+l[1].Nodes+l[2].Nodes != 32 {
		t.Errorf("loads: %v", l)
	}
	if n := len(is.Tunnels); n < 3 || n > 5 {
		t.Errorf("tunnels: %v", is.Tunnels)
	}
	seen := map[uint32]bool{}
	for _, k := range is.Tunnels {
		if k.VNI == 0 || k.VNI >= 1<<24 || seen[k.VNI] || k.Machines[0] == k.Machines[1] {
			t.Errorf("tunnel: %v", k)
		}
		seen[k.VNI] = true
	}
	again, err := Map(topo, parse(t, three))
	if err != nil || !slices.Equal(is.Nodes, again.Nodes) || !slices.Equal(is.Tunnels, again.Tunnels) {
		t.Errorf("again: %v, %v", again, err)
	}
	one := parse(t, "machines: [{name: m1, ssh: m1}]")
	if is, err := Map(topology.OSHI(), one); err != nil || len(is.Tunnels) != 0 {
		t.Errorf("one machine: %v, %v", is, err)
	}
}

func TestMapRefused(t *testing.T) {
	for want, topo := range map[string]*topology.Topology{
		"has no node \"s1\"": {Name: "x", Switches: []topology.Switch{{Name: "a"}}},
		"cannot be spread":   topology.OSHI(),
		"h1 has a tunnel":    {Name: "x", Switches: []topology.Switch{{Name: "a"}}, Hosts: []topology.Host{{Name: "h1", Switch: "b", Tunnel: &topology.Tunnel{}}}},
	} {
		topo.Complete()
		if _, err := Map(topo, parse(t, three)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// TestParse: what goes to ssh and to shells can be nothing but what it is to be.
func TestParse(t *testing.T) {
	m := parse(t, three)
	if k := m.List[1]; k.Host != "m2" || k.SSHPort != 2222 || k.User != "" || m.List[0].Address.String() != "192.0.2.1" || m.List[2].Host != "2001:db8::3" || m.Port != 4789 {
		t.Errorf("%+v", m)
	}
	for text, want := range map[string]string{
		"machines: []": "names no machines",
		"machines: [{name: m1, ssh: -oProxyCommand=x}]":                                                        "is not where ssh goes",
		"machines: [{name: m1, ssh: 'root@a b'}]":                                                              "is not where ssh goes",
		"machines: [{name: m1, ssh: '-x@a'}]":                                                                  "is not where ssh goes",
		"machines: [{name: m1, ssh: 'a:99999'}]":                                                               "is not where ssh goes",
		"machines: [{name: m1, ssh: a, weft: '/bin/weft;reboot'}]":                                             "weft:",
		"machines: [{name: m1, ssh: a, weft: weft}]":                                                           "weft:",
		"machines: [{name: 'm 1', ssh: a}]":                                                                    "is not a name",
		"machines: [{name: m1, shh: a}]":                                                                       "did you mean ssh",
		"machines: [{name: m1, ssh: a, address: 10.0.0.1}, {name: m1, ssh: b, address: 10.0.0.2}]":             "two machines m1",
		"machines: [{name: m1, ssh: a, address: 10.0.0.1}, {name: m2, ssh: b, address: 10.0.0.1}]":             "already machine m1's",
		"machines: [{name: m1, ssh: a, address: 10.0.0.1}, {name: m2, ssh: b, address: 'fd00::1'}]":            "one family",
		"machines: [{name: m1, ssh: a, address: 10.0.0.1, nodes: [x]}, {name: m2, ssh: 10.0.0.2, nodes: [x]}]": "on machine m1 and on machine m2",
		"machines: [{name: m1, ssh: a, cores: 0}]":                                                             "cores:",
		"machines: [{name: m1, ssh: a}, {name: m2, ssh: b}]":                                                   "at which address",
		"machines: [{name: m1, ssh: a}]\ncontroller: somewhere":                                                "not a controller's address",
		"machines: [" + strings.Repeat("{name: m1, ssh: a}, ", MaxMachines+1) + "]":                            "at most 64",
		"# " + strings.Repeat("x", MaxText):                                                                    "octets",
	} {
		if _, err := Parse("machines.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v; want %q", text, err, want)
		}
	}
}
