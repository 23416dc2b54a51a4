package lab

import (
	"reflect"
	"strings"
	"testing"
)

const comparedLab = `
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

func parsed(t *testing.T, text string, running *state) *Topology {
	t.Helper()
	topo, err := parse("f.yaml", []byte(text), running)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// What a changed file has other than a lab, in the words in which it is printed.
func TestCompare(t *testing.T) {
	running := newState(parsed(t, comparedLab, nil))
	for name, test := range map[string]struct {
		change []string // old and new, in turns
		want   []string
	}{
		"nothing": {},
		"added before others": {
			[]string{"hosts:\n", "hosts:\n  - {name: h0, switch: s1}\n", "links:\n", "links:\n  - {a: s1, b: s3}\n", "[{name: s1}", "[{name: s0}, {name: s1}"},
			[]string{"+ switch s0", "+ host h0", "+ link s1:4-s3:4"},
		},
		"deleted with what is on it": {
			[]string{", {name: s3}", "", "  - {name: h3, switch: s3}\n", "", "  - {a: s2, b: s3}\n  - {a: s2, b: s3}\n", ""},
			[]string{"- switch s3", "- host h3", "- link s2:3-s3:2", "- link s2:4-s3:3"},
		},
		"properties": {
			[]string{"rate: 10mbit", "rate: 20mbit, loss: 1%", "{name: h2, switch: s2}", "{name: h2, switch: s2, ipv4: 10.0.0.9/24, run: [sleep 8]}", "sleep 9", "sleep 7",
				"{name: s3}", "{name: s3, fail_mode: standalone}"},
			[]string{
				"switch s3: fail_mode from secure to standalone",
				"host h1: program sleep from sleep 9 to sleep 7",
				"host h2: ipv4 from 10.0.0.2/24 to 10.0.0.9/24",
				"host h2: program sleep from none to sleep 8",
				"link s1:2-s2:2: rate from 10mbit to 20mbit",
				"link s1:2-s2:2: loss from none to 1%",
			},
		},
		"a link the other way round": {[]string{"a: s1, b: s2", "a: s2, b: s1"}, nil},
		"one of two":                 {[]string{"  - {a: s2, b: s3}\n", ""}, []string{"- link s2:4-s3:3"}},
		"the other of two": {
			[]string{"  - {a: s2, b: s3}\n  - {a: s2, b: s3}\n", "  - {a: s2, b: s3, a_port: 4}\n"},
			[]string{"- link s2:3-s3:2"},
		},
		"moved": {[]string{"h3, switch: s3", "h3, switch: s1"}, []string{"host h3: switch from s3 to s1", "host h3: port from 1 to 3"}},
		"no address": {
			[]string{"{name: h2, switch: s2}", "{name: h2, switch: s2, ipv6: none}"},
			[]string{"host h2: ipv6 from fd00::2/64 to none"},
		},
		"names": {
			[]string{"switches:", "names: [{name: x, addresses: [192.0.2.1]}]\nswitches:"},
			[]string{`lab compared: names from none to [{"name":"x","addresses":["192.0.2.1"]}]`},
		},
		"a controller": {
			[]string{"switches:", "controller: none\nswitches:"},
			[]string{"lab compared: controller from tcp:127.0.0.1:6653 to none"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := comparedLab
			for i := 0; i < len(test.change); i += 2 {
				text = strings.Replace(text, test.change[i], test.change[i+1], 1)
			}
			d := Compare(running.Topology, parsed(t, text, running))
			var got []string
			for _, i := range d.Added {
				got = append(got, "+ "+i.String())
			}
			for _, i := range d.Deleted {
				got = append(got, "- "+i.String())
			}
			for _, e := range d.Changed {
				got = append(got, e.String())
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// Controllers given to who brought the lab up count more than those of its file.
func TestCompareKeepsGivenControllers(t *testing.T) {
	running := newState(parsed(t, comparedLab, nil))
	running.Given = true
	if d := Compare(running.Topology, parsed(t, "controller: none\n"+comparedLab, running)); !d.None() {
		t.Errorf("%+v", d)
	}
}

// What this machine cannot make is refused before anything is touched, and nothing else.
func TestApplyRefuses(t *testing.T) {
	running := newState(parsed(t, comparedLab, nil))
	for _, test := range []struct{ old, new, want string }{
		{"switches:", "controller: ssl:127.0.0.1:6653\nswitches:", "the switches need a certificate"},
		{"sleep 9", "no-such-program", "there is no program no-such-program"},
		{"switches:", "controller: none\nswitches:", ""},
	} {
		to := parsed(t, strings.Replace(comparedLab, test.old, test.new, 1), running)
		if err := running.refuse(to, running.differs(to)); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// Nodes keep their addresses and numbers when others come and go.
func TestNodesKeep(t *testing.T) {
	running := newState(parsed(t, nodesFile, nil))
	text := strings.Replace(nodesFile, "switches:\n", "switches:\n  - {name: r0, kind: router}\n", 1)
	text = strings.Replace(text, "links:\n", "links:\n  - {a: r0, b: b1}\n  - {a: r0, b: cr1}\n", 1)
	text = strings.Replace(text, "  - {a: pe1, b: b1}\n", "", 1)
	laid := layOut(parsed(t, text, running), running)
	for _, n := range running.Nodes {
		now := laid.node(n.Name)
		if now == nil || now.Number != n.Number || now.Loopback != n.Loopback {
			t.Fatalf("%s was %+v, and is %+v", n.Name, n, now)
		}
		for _, p := range n.Ports {
			q := now.port(p.Port)
			switch {
			case n.Name == "pe1" && p.Role == roleSegment:
				if q != nil {
					t.Errorf("pe1 has %+v", q)
				}
			case q == nil || q.IPv4 != p.IPv4 || q.IPv6 != p.IPv6 || q.InternalInterface != p.InternalInterface || q.Interface != p.Interface:
				t.Errorf("%s had %+v, and has %+v", n.Name, p, q)
			}
		}
	}
	if r0 := laid.node("r0"); r0.Number != 3 || r0.port(1).IPv4.String() != "10.253.0.1/24" || r0.port(2).IPv4.String() != "10.254.0.2/31" {
		t.Errorf("r0 is %+v", r0)
	}
}

// A daemon of FRR is told what has changed alone, and is started again where that does not do.
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
		got, ok := frrChange("ospfd", was, test.is)
		if strings.Join(got, "|") != test.want || ok != test.ok {
			t.Errorf("to\n%s: %v, %q", test.is, ok, got)
		}
	}
}

// A topology that was made from no file is one that can be read.
func TestTopologyYAML(t *testing.T) {
	topo := linear(t, 3, 2)
	b, err := topo.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if d := Compare(topo, parsed(t, string(b), nil)); !d.None() {
		t.Errorf("%+v\n%s", d, b)
	}
}
