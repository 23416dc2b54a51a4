package lab

import (
	"io"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/topology"
)

const inlineFile = `
controller: none
switches: [{name: s1, fail_mode: standalone}, {name: s2, fail_mode: standalone}]
hosts:
- {name: a, switch: s1}
- {name: z, switch: s2}
- {name: f, switch: s1, eth1: {switch: s2, port: 9}, ipv4: none, ipv6: none, cpus: [1]}
- {name: g, switch: s1, eth1: {}, cpus: [0, 1]}
`

// CPUs of a host and its second interface are read, completed and written.
func TestInlineHostsAreRead(t *testing.T) {
	topo, err := topology.Parse("f", []byte(inlineFile))
	if err != nil {
		t.Fatal(err)
	}
	f, g := topo.Hosts[2], topo.Hosts[3]
	if *f.Eth1 != (topology.Attachment{Switch: "s2", Port: 9}) || len(f.CPUs) != 1 || f.CPUs[0] != 1 {
		t.Errorf("f has eth1 %+v, CPUs %v", f.Eth1, f.CPUs)
	}
	if *g.Eth1 != (topology.Attachment{Switch: "s1", Port: g.Port + 1}) || len(g.CPUs) != 2 {
		t.Errorf("g at port %d has eth1 %+v, CPUs %v", g.Port, g.Eth1, g.CPUs)
	}
	var text strings.Builder
	if err := GraphOf(topo).Text(&text); err != nil || !strings.Contains(text.String(), "9→f:eth1") {
		t.Errorf("%s, %v", text.String(), err)
	}
	for file, want := range map[string]string{
		"switches: [{name: s}]\nhosts: [{name: a, switch: s, eth1: {switch: x}}]":                          "f:2: host a has eth1 attached to the unknown switch \"x\"; allowed: s",
		"switches: [{name: s}]\nhosts: [{name: a, switch: s, port: 3, eth1: {port: 3}}]":                   "f:2: eth1 of host a: port 3 of switch s is already used by host a",
		"switches: [{name: s}]\nhosts: [{name: a, switch: s, cpus: [0, 0]}]":                               "f:2: host a: CPU 0 is named twice",
		"switches: [{name: s}]\nhosts: [{name: a, switch: s, cpus: [-1]}]":                                 `f:2: cpus: "-1" is not allowed; allowed: a number from 0 to 1023`,
		"switches: [{name: s}]\nhosts: [{name: a, switch: s, cpus: 1}]":                                    "f:2: cpus is a number: write a list",
		"switches: [{name: s}, {name: r, kind: router}]\nhosts: [{name: a, switch: s, eth1: {switch: r}}]": "f:2: host a has eth1 attached to r, which is a router; allowed: an OpenFlow switch",
	} {
		if _, err := topology.Parse("f", []byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngives %v\nwant  %s", file, err, want)
		}
	}
}

// A host's programs and commands use its CPUs alone; its second interface
// is a port of its switch; CPUs that the machine has not are refused.
func TestInlineHosts(t *testing.T) {
	t.Parallel()
	topo, err := topology.Parse("f", []byte(strings.ReplaceAll(inlineFile, "cpus: [1]", "cpus: [0]")))
	if err != nil {
		t.Fatal(err)
	}
	topo.Hosts[2].Run = []topology.Program{{Name: "show", Restart: topology.RestartNever, Command: `grep Cpus_allowed_list /proc/self/status`}}
	topo.Hosts[3].CPUs = nil
	topo.Hosts[3].Eth1 = nil
	l := upForTest(t, topo, Options{})
	if out, err := l.Exec(t.Context(), "f", "grep", "Cpus_allowed_list", "/proc/self/status"); err != nil || strings.Fields(out)[1] != "0" {
		t.Errorf("a command uses %q, %v", out, err)
	}
	r := l.Log("f", "show")
	b, err := io.ReadAll(r)
	r.Close()
	if got := strings.Fields(string(b)); err != nil || len(got) < 2 || got[1] != "0" {
		t.Errorf("a program wrote %q, %v", b, err)
	}
	if ports, err := l.OfCtl(t.Context(), "s2", "dump-ports-desc"); err != nil || !strings.Contains(ports, " 9(s2-eth9)") {
		t.Errorf("%s, %v", ports, err)
	}
	for _, up := range []bool{true, false, true} {
		out, err := l.Exec(t.Context(), "f", "ip", "link", "show", "eth1")
		if err != nil || strings.Contains(out, "LOWER_UP") != up {
			t.Errorf("eth1 is up: want %v of %s, %v", up, out, err)
		}
		change := l.LinkDown
		if !up {
			change = l.LinkUp
		}
		if err := change(t.Context(), "s2", "f:eth1"); err != nil {
			t.Fatal(err)
		}
	}
	topo.Hosts[2].CPUs = []int{1023}
	if _, err := Up(t.Context(), topo, Options{Name: "refused", KeeperCommand: keeperOfTest(t)}); err == nil || !strings.Contains(err.Error(), "this machine has no CPU 1023; allowed: [0") {
		t.Errorf("a CPU that there is not: %v", err)
	}
}
