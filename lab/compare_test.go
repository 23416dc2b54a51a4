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

// What cannot be changed in a running lab is refused, and it is said how to.
func TestApplyRefuses(t *testing.T) {
	running := newState(parsed(t, comparedLab, nil))
	hybridText := strings.ReplaceAll(comparedLab, "{name: s", "{kind: hybrid, name: s")
	hybrid := newState(parsed(t, hybridText, nil))
	for _, test := range []struct {
		running  *state
		old, new string
		want     string
	}{
		{running, "switches:", "controller: none\nswitches:", "controller of lab compared cannot be changed from tcp:127.0.0.1:6653 to none while the lab is up; allowed: take"},
		{running, comparedLab, hybridText, "cannot be changed"},
		{hybrid, "  - {a: s1, b: s2, rate: 10mbit}\n", "", "cannot be added or deleted while a lab with hybrid nodes"},
		{running, "sleep 9", "no-such-program", "there is no program no-such-program"},
	} {
		text := comparedLab
		if test.running == hybrid {
			text = hybridText
		}
		text = strings.Replace(text, test.old, test.new, 1)
		to := parsed(t, text, test.running)
		if err := test.running.refuse(to, test.running.differs(to)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
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
