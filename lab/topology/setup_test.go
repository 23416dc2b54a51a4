package topology

import (
	"slices"
	"strings"
	"testing"
)

func TestSetups(t *testing.T) {
	text := []byte("hosts:\n  - {name: h1, switch: s1, x-setup: ip route, x-position: [1, 2]}\n  - {name: h2, switch: s1}\n  - name: h3\n    switch: s1\n    x-setup: echo 'a b' >x\nswitches: [{name: s1, x-setup: ovs-vsctl show}]\n")
	if got, want := Setups(text), []Setup{{"s1", "ovs-vsctl show"}, {"h1", "ip route"}, {"h3", "echo 'a b' >x"}}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got, err := SetupsOf(text, []string{"h3", "s1"}); err != nil || len(got) != 2 || got[1].Node != "h3" {
		t.Errorf("%v, %v", got, err)
	}
	for want, nodes := range map[string][]string{`no x-setup of node "h2"`: {"h1", "h2"}, "no node of the lab's file": nil} {
		of := text
		if nodes == nil {
			of = nil
		}
		if _, err := SetupsOf(of, nodes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	topo, err := Parse("net.yaml", text)
	if err != nil || string(topo.Text()) != string(text) {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "[", "[]", "hosts: 1", "hosts: [1, {name: [], x-setup: x}]"} {
		if got := Setups([]byte(bad)); got != nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}
