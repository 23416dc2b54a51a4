package testbed

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/topology"
)

const spread = `name: net
switches: [{name: s1}, {name: s2, dpid: 0x77}, {name: s3}, {name: s4}]
hosts:
  - {name: h1, switch: s1}
  - {name: h2, switch: s2, vlan: 7, mtu: 1400}
  - {name: h3, switch: s3, ipv6: none}
  - {name: far, switch: s1, rate: 10mbit}
links:
  - {a: s1, b: s2, delay: 5ms}
  - {a: s2, b: s3, loss: 1%}
  - {a: s3, b: s4}
  - {a: s4, b: s1, mtu: 1600}
`

const twoMachines = `machines:
  - {name: m1, ssh: root@192.0.2.1, nodes: [s1, s2, h1]}
  - {name: m2, ssh: root@192.0.2.2, nodes: [s3, s4, far]}
  - {name: spare, ssh: root@192.0.2.3, nodes: []}
controller: tcp:192.0.2.9:6653
vxlan_port: 4790
`

// cut is a lab file spread over machines: its parts by machine, as they read after
// they have been written to a file.
func cut(t *testing.T, topo *topology.Topology, m *Machines) map[string]*topology.Topology {
	t.Helper()
	is, err := Map(topo, m)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := Parts(topo, m, is)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*topology.Topology{}
	for _, p := range parts {
		text, err := p.Topology.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if all[p.Machine], err = topology.Parse(p.Machine, text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	return all
}

// TestParts: every node is in one part as it is in the lab, every link as well, and
// those that are cut are in two, with tunnels that meet.
func TestParts(t *testing.T) {
	ring, err := topology.Ring(12, 2)
	if err != nil {
		t.Fatal(err)
	}
	topo, err := topology.Parse("net.yaml", []byte(spread))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		topo     *topology.Topology
		machines string
	}{{topo, twoMachines}, {ring, three}} {
		m := parse(t, test.machines)
		parts := cut(t, test.topo, m)
		nodes, links := map[string]string{}, map[string][]topology.Link{}
		ends := map[uint32][]*topology.Tunnel{}
		add := func(machine string, k *topology.Tunnel) {
			if k == nil {
				return
			}
			if i := slices.IndexFunc(m.List, func(x Machine) bool { return x.Name == machine }); m.List[i].Address != k.Local || k.Port != m.Port {
				t.Errorf("machine %s: tunnel %+v", machine, k)
			}
			ends[k.VNI] = append(ends[k.VNI], k)
		}
		put := func(node, machine string) {
			if nodes[node] != "" {
				t.Errorf("%s is on %s and %s", node, nodes[node], machine)
			}
			nodes[node] = machine
		}
		for machine, p := range parts {
			if !slices.Equal(p.Controllers, []string{"tcp:192.0.2.9:6653"}) || p.Name != test.topo.Name+"-"+machine {
				t.Errorf("%s: %v", p.Name, p.Controllers)
			}
			for _, s := range p.Switches {
				put(s.Name, machine)
				if was, _ := test.topo.SwitchByName(s.Name); was.DPID != s.DPID {
					t.Errorf("%+v; want %+v", s, was)
				}
			}
			for _, h := range p.Hosts {
				put(h.Name, machine)
				was, _ := test.topo.HostByName(h.Name)
				if was.MAC != h.MAC || was.IPv4 != h.IPv4 || was.IPv6 != h.IPv6 || was.Port != h.Port || was.VLAN != h.VLAN || was.Shape != h.Shape {
					t.Errorf("%+v; want %+v", h, was)
				}
				add(machine, h.Tunnel)
			}
			for _, l := range p.Links {
				name := l.String()
				if l.B < l.A && l.BPort != 0 {
					name = topology.Link{A: l.B, APort: l.BPort, B: l.A, BPort: l.APort}.String()
				}
				links[name] = append(links[name], l)
				add(machine, l.Tunnel)
			}
			if len(p.Names)+len(p.Hosts) != len(test.topo.Hosts) {
				t.Errorf("%s: %d hosts, and names %v", p.Name, len(p.Hosts), p.Names)
			}
		}
		if len(nodes) != len(test.topo.Switches)+len(test.topo.Hosts) {
			t.Errorf("%d nodes: %v", len(nodes), nodes)
		}
		for vni, e := range ends {
			if len(e) != 2 || e[0].Local != e[1].Remote || e[0].Remote != e[1].Local {
				t.Errorf("vni %d: %v", vni, e)
			}
		}
		for _, l := range test.topo.Links {
			name, want := l.String(), 1
			if l.B < l.A {
				name = topology.Link{A: l.B, APort: l.BPort, B: l.A, BPort: l.APort}.String()
			}
			if nodes[l.A] != nodes[l.B] {
				want = 2
			}
			if got := links[name]; len(got) != want || (got[0].Tunnel != nil) != (want == 2) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	parts := cut(t, topo, parse(t, twoMachines))
	if len(parts) != 2 {
		t.Errorf("a machine without nodes has a part: %v", parts)
	}
	if l := parts["m1"].Links; l[0].B != "far" || l[0].BPort != 0 || l[0].Rate != 0 || l[0].MTU != 1500 {
		t.Errorf("the switch of a host that is elsewhere: %+v", l[0])
	}
	if far, _ := parts["m2"].HostByName("far"); far.Tunnel == nil || far.Rate == 0 {
		t.Errorf("%+v", far)
	}
}

func TestPartsRefused(t *testing.T) {
	for want, change := range map[string]func(*topology.Topology, *Machines){
		"is another one on each machine": func(_ *topology.Topology, m *Machines) { m.Controller = "" },
		"cannot have controller ssl":     func(_ *topology.Topology, m *Machines) { m.Controller = "ssl:192.0.2.9:6653" },
		"cannot have controller direct":  func(topo *topology.Topology, m *Machines) { topo.Controllers, m.Controller = []string{"direct"}, "" },
		"longer than 32":                 func(topo *topology.Topology, _ *Machines) { topo.Name = strings.Repeat("x", 30) },
	} {
		topo, err := topology.Parse("net.yaml", []byte(spread))
		if err != nil {
			t.Fatal(err)
		}
		m := parse(t, twoMachines)
		change(topo, m)
		is, err := Map(topo, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parts(topo, m, is); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
