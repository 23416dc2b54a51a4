package topology

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

func parseText(t *testing.T, text string, running Running) *Topology {
	t.Helper()
	topo, err := ParseChanged("f.yaml", []byte(text), running)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// What a changed file has other than a lab, in the words in which it is printed.
func TestCompare(t *testing.T) {
	running := Running{Topology: parseText(t, comparedLab, Running{})}
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
			d := Compare(running.Topology, parseText(t, text, running))
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
	running := Running{Topology: parseText(t, comparedLab, Running{})}
	running.Given = true
	if d := Compare(running.Topology, parseText(t, "controller: none\n"+comparedLab, running)); !d.None() {
		t.Errorf("%+v", d)
	}
}

// A topology that was made from no file is one that can be read.
func TestTopologyYAML(t *testing.T) {
	topo, err := Linear(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	b, err := topo.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if d := Compare(topo, parseText(t, string(b), Running{})); !d.None() {
		t.Errorf("%+v\n%s", d, b)
	}
}

// TestApplyIPv4Only: a host behind a gateway loses the IPv6 address that it was given when its
// routing becomes IPv4 alone.
func TestApplyIPv4Only(t *testing.T) {
	const text = "switches: [{name: r, kind: router}]\nhosts: [{name: h, switch: r, gateway: true}]\n"
	was := parseText(t, text, Running{})
	if h := was.Hosts[0]; !h.HasIPv6() {
		t.Fatalf("%+v", h)
	}
	is := parseText(t, text+"routing: {ipv4_only: true}\n", Running{Topology: was})
	if h := is.Hosts[0]; h.HasIPv6() || h.IPv4 != was.Hosts[0].IPv4 {
		t.Errorf("%+v", h)
	}
}
