package lab

import (
	"slices"
	"testing"
)

func TestSetups(t *testing.T) {
	text := []byte("switches: [{name: s1}]\nhosts:\n  - {name: h1, switch: s1, x-setup: ip route, x-position: [1, 2]}\n  - {name: h2, switch: s1}\n  - name: h3\n    switch: s1\n    x-setup: echo 'a b' >x\n")
	if got, want := Setups(text), []Setup{{"h1", "ip route"}, {"h3", "echo 'a b' >x"}}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
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
