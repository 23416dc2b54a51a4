package lab

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

const laidLab = `
name: compared
switches: [{name: s1}, {name: s2}, {name: s3}]
hosts:
  - {name: h1, switch: s1, run: [sleep 9]}
  - {name: h2, switch: s2}
  - {name: h3, switch: s3}
links:
  - {a: s1, b: s2, rate: 10mbit}
  - {a: s2, b: s3}
  - {a: s2, b: s3}
`

const laidNodes = `
name: carrier
switches:
  - {name: pe1, kind: hybrid}
  - {name: cr1, kind: router, loopback: 10.9.9.9, loopback6: fd99::1}
  - {name: pe2, kind: hybrid}
  - {name: b1, kind: bridge}
  - {name: b2, kind: bridge}
hosts:
  - {name: ce1, switch: pe1, gateway: true}
  - {name: ce2, switch: pe2, gateway: true, ipv4: 192.0.2.1/30, ipv6: none}
  - {name: cx1, switch: pe1}
links:
  - {a: pe1, b: cr1}
  - {a: pe1, b: b1}
  - {a: b1, b: b2}
  - {a: pe2, b: b2, mtu: 1400}
  - {a: cr1, b: b2}
routing: {hello: 5s, bfd: 100ms}
control: {mode: in-band, at: cr1}
ovs: own
`

func parsed(t *testing.T, text string, running *layout.Lab) *topology.Topology {
	t.Helper()
	topo, err := topology.ParseChanged("f.yaml", []byte(text), runningOf(running))
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// runningOf is what a file is read for; of nil, for none.
func runningOf(s *layout.Lab) topology.Running {
	if s == nil {
		return topology.Running{}
	}
	return topology.Running{Topology: s.Topology, Given: s.Given}
}

// What programs a machine lacks is said in one line, which ends with what to do.
func TestAbsentPrograms(t *testing.T) {
	const lab = "switches: [{name: s1}]\nhosts:\n"
	host := func(name, run string) string {
		return fmt.Sprintf("  - {name: %s, switch: s1, run: [%s]}\n", name, run)
	}
	many := ""
	for i := range 12 {
		many += host(fmt.Sprintf("m%d", i), fmt.Sprintf("no%d", i))
	}
	for _, test := range []struct{ hosts, want string }{
		{host("h1", "cat"), ""},
		{host("h1", "no1 -x"), "f.yaml:3: host h1, program no1: there is no program no1 in PATH: install what is missing, or set the PATH of weft lab up to where it is"},
		{host("h1", "/no/1"), "f.yaml:3: host h1, program 1: there is no program /no/1 in /labs: install what is missing, or change its path"},
		{
			host("h1", "no1") + host("h2", "no2, cat") + host("h3", "no2, no2, ./no3") + host("h4", "no1"),
			"f.yaml:3: host h1, program no1: there is no program no1 in PATH (also h4); nor no2 (h2, h3), ./no3 (h3): install what is missing, or set the PATH of weft lab up to where it is",
		},
		{
			host("h0", "no") + host("h1", "no") + host("h2", "no") + host("h3", "no") + host("h4", "no") + host("h5", "no") + host("h6", "no"),
			"f.yaml:3: host h0, program no: there is no program no in PATH (also h1, h2, h3, h4 and 2 more): install what is missing, or set the PATH of weft lab up to where it is",
		},
		{
			many,
			"f.yaml:3: host m0, program no0: there is no program no0 in PATH; nor no1 (m1), no2 (m2), no3 (m3), no4 (m4), no5 (m5), no6 (m6), no7 (m7), no8 (m8), no9 (m9), no10 (m10) and 1 more: install what is missing, or set the PATH of weft lab up to where it is",
		},
	} {
		laid := layout.Lay(parsed(t, lab+test.hosts, nil))
		laid.Directory = "/labs"
		if err := nodes.HostsOf(laid).CheckPrograms(); (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%s: got\n%v; want\n%s", test.hosts, err, test.want)
		}
	}
}

// What this machine cannot make is refused before anything is touched, and nothing else.
func TestApplyRefuses(t *testing.T) {
	running := layout.Lay(parsed(t, laidLab, nil))
	for _, test := range []struct{ old, new, want string }{
		{"switches:", "controller: ssl:127.0.0.1:6653\nswitches:", "the switches need a certificate"},
		{"sleep 9", "no-such-program", "there is no program no-such-program"},
		{"switches:", "controller: none\nswitches:", ""},
	} {
		to := parsed(t, strings.Replace(laidLab, test.old, test.new, 1), running)
		if err := changesOf(running).refuse(to, changesOf(running).differs(to)); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// Nodes keep their addresses and numbers when others come and go.
func TestNodesKeep(t *testing.T) {
	running := layout.Lay(parsed(t, laidNodes, nil))
	text := strings.Replace(laidNodes, "switches:\n", "switches:\n  - {name: r0, kind: router}\n", 1)
	text = strings.Replace(text, "links:\n", "links:\n  - {a: r0, b: b1}\n  - {a: r0, b: cr1}\n", 1)
	text = strings.Replace(text, "  - {a: pe1, b: b1}\n", "", 1)
	laid := layout.LayAgain(parsed(t, text, running), running)
	for _, n := range running.Nodes {
		now := laid.Node(n.Name)
		if now == nil || now.Number != n.Number || now.Loopback != n.Loopback {
			t.Fatalf("%s was %+v, and is %+v", n.Name, n, now)
		}
		for _, p := range n.Ports {
			q := now.PortAt(p.Port)
			switch {
			case n.Name == "pe1" && p.Role == layout.RoleSegment:
				if q != nil {
					t.Errorf("pe1 has %+v", q)
				}
			case q == nil || q.IPv4 != p.IPv4 || q.IPv6 != p.IPv6 || q.InternalInterface != p.InternalInterface || q.Interface != p.Interface:
				t.Errorf("%s had %+v, and has %+v", n.Name, p, q)
			}
		}
	}
	if r0 := laid.Node("r0"); r0.Number != 3 || r0.PortAt(1).IPv4.String() != "10.253.0.1/24" || r0.PortAt(2).IPv4.String() != "10.254.0.2/31" {
		t.Errorf("r0 is %+v", r0)
	}
}

// TestFRRChange: a daemon of FRR gets only the lines that changed, and is restarted where
// that is not enough.
func TestFRRChange(t *testing.T) {
	const was = "hostname a\ninterface e1\n ip ospf area 0\n ip ospf hello-interval 1\n ip ospf bfd\n ip ospf bfd profile lab\ninterface e2\n ip ospf area 0\nrouter ospf\n ospf router-id 1.1.1.1\n"
	for _, test := range []struct {
		is   string
		want string
		ok   bool
	}{
		{was, "", true},
		{strings.Replace(was, "interval 1", "interval 2", 1), "interface e1|ip ospf hello-interval 2|exit", true},
		{strings.Replace(was, " ip ospf bfd\n ip ospf bfd profile lab\n", " ip ospf passive\n", 1), "interface e1|no ip ospf bfd profile lab|no ip ospf bfd|exit|interface e1|ip ospf passive|exit", true},
		{strings.Replace(was, "interface e2\n", "interface e3\n", 1), "interface e2|no ip ospf area 0|exit|interface e3|ip ospf area 0|exit", true},
		{strings.Replace(was, "1.1.1.1", "1.1.1.2", 1), "", false},
	} {
		got, ok := nodes.FRRChange("ospfd", was, test.is)
		if strings.Join(got, "|") != test.want || ok != test.ok {
			t.Errorf("to\n%s: %v, %q", test.is, ok, got)
		}
	}
}

// TestLayNodes: what the nodes of the file above have.
func TestLayNodes(t *testing.T) {
	topo, err := topology.Parse("f", []byte(laidNodes))
	if err != nil {
		t.Fatal(err)
	}
	s := layout.Lay(topo)
	var lines []string
	for _, n := range s.Nodes {
		for _, p := range n.Ports {
			lines = append(lines, strings.Join([]string{
				n.Name, string(p.Role), p.Interface, p.InternalInterface, p.IPv4.String(), strings.Join(p.Neighbours, " ")}, "|"))
		}
	}
	want := []string{
		"pe1|gateway|vi1|pe1-in1|10.64.1.1/24|",
		"pe1|access|||invalid Prefix|",
		"pe1|link|vi3|pe1-in3|10.254.0.0/31|cr1",
		"pe1|segment|vi4|pe1-in4|10.253.0.1/24|pe2 cr1",
		"cr1|link|eth1||10.254.0.1/31|pe1",
		"cr1|segment|eth2||10.253.0.3/24|pe1 pe2",
		"pe2|gateway|vi1|pe2-in1|192.0.2.2/30|",
		"pe2|segment|vi2|pe2-in2|10.253.0.2/24|pe1 cr1",
	}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("the nodes have\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if mtu := s.Nodes[1].Ports[1].MTU; mtu != 1400 {
		t.Errorf("the network of bridges has MTU %d, want the least of its links, 1400", mtu)
	}
}

// Names longer than the kernel allows for an interface become short ones.
func TestInterfaceNames(t *testing.T) {
	topo := &topology.Topology{Name: "long", Switches: []topology.Switch{
		{Name: "a-switch-with-a-long-name"}, {Name: "exactly15chars."}, {Name: "all"}, {Name: "s1"}, {Name: "s1-eth1"}, {Name: "sw1"},
	}}
	for i := range 5 {
		topo.Hosts = append(topo.Hosts, topology.Host{Name: fmt.Sprintf("host-%d", i), Switch: topo.Switches[i].Name})
		topo.Links = append(topo.Links, topology.Link{A: topo.Switches[i].Name, B: topo.Switches[i+1].Name})
	}
	topo.Complete()
	if err := topology.Check(topo); err != nil {
		t.Fatal(err)
	}
	s := layout.Lay(topo)
	used := map[string]bool{"lo": true, "all": true, "default": true}
	take := func(name string) {
		if len(name) > 15 || used[name] {
			t.Errorf("interface name %q: %d bytes, used %v", name, len(name), used[name])
		}
		used[name] = true
	}
	for _, b := range s.Bridges {
		take(b)
	}
	for _, w := range s.Wires {
		for _, e := range w.Ends() {
			if !e.Host {
				take(e.Iface)
			}
		}
	}
	if s.Bridges["s1"] != "s1" || s.Bridges["exactly15chars."] != "exactly15chars." {
		t.Errorf("short names were changed: %v", s.Bridges)
	}
}
