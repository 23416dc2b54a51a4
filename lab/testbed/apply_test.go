package testbed

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// TestApplyMachines: a lab over two machines is changed, and what does not differ is not touched.
func TestApplyMachines(t *testing.T) {
	t.Parallel()
	s := newSite(t, "m1", "m2")
	name := fmt.Sprintf("ta%d", os.Getpid())
	text := fmt.Sprintf(spreadNet, name)
	file, machines := s.write("net.yaml", text), s.write("machines.yaml", fmt.Sprintf(two, s.weft))
	s.lab(0, "up", file, "--machines", machines)
	var d topology.Difference
	none := func() {
		t.Helper()
		if s.labJSON(&d, "apply", file, "--dry-run"); !d.None() {
			t.Errorf("%+v", d)
		}
	}
	none()
	vxlan := func(machine string) string { // the devices with their numbers, which others would have
		t.Helper()
		return s.out(s.servers[machine].Process.Pid, "sh", "-c", `ip netns exec "weft-$1" ip -o link show type vxlan | cut -d '<' -f 1`, "sh", name+"-"+machine)
	}
	link := s.vniOf(name, "s1:4-s2:2")
	before := vxlan("m1") + vxlan("m2")
	ping := s.pinging(name, "h1", "h2")

	// A switch, hosts, and links within a machine and between; another shape; a host fewer.
	changed := strings.NewReplacer(
		"  - {name: s2, fail_mode: standalone}\n", "  - {name: s2, fail_mode: standalone}\n  - {name: s3, fail_mode: standalone}\n",
		"  - {name: v1, switch: s1, vlan: 7}\n", "  - {name: h3, switch: s3}\n",
		"  - {a: s1, b: s2}\n", "  - {a: s2, b: s1}\n  - {a: s2, b: s3, rate: 50mbit}\n",
	).Replace(text)
	s.write("net.yaml", changed)
	if s.labJSON(&d, "apply", file, "--dry-run"); !slices.Contains(d.Added, topology.Item{Kind: "host", Name: "h3"}) ||
		!slices.Contains(d.Deleted, topology.Item{Kind: "host", Name: "v1"}) || len(d.Added) != 3 || len(d.Deleted) != 1 || len(d.Changed) != 0 {
		t.Errorf("%+v", d)
	}
	var done topology.Difference
	s.labJSON(&done, "apply", file)
	none()
	if said := ping(); !strings.Contains(said, "400 received") {
		t.Errorf("meanwhile: %s", said)
	}
	if len(done.Added) != 3 || len(done.Deleted) != 1 {
		t.Errorf("%+v", done)
	}
	now := vxlan("m1") + vxlan("m2")
	for line := range strings.Lines(before) {
		if !strings.Contains(now, line) {
			t.Errorf("tunnels were\n%sand are\n%s", before, now)
		}
	}
	s.lab(0, "ping", "--all", "-i", "20ms", "-W", "10s", "-c", "1")

	// A host on another switch, and no link between the machines but that of v2.
	changed = strings.NewReplacer("  - {a: s2, b: s1}\n", "", "{name: h3, switch: s3}", "{name: h3, switch: s1}").Replace(changed)
	s.write("net.yaml", changed)
	s.lab(0, "apply", file)
	none()
	if now := vxlan("m1"); strings.Count(now, "vxlan") != strings.Count(vxlan("m2"), "vxlan") || strings.Contains(now, link) {
		t.Errorf("tunnels at m1: %s", now)
	}
	s.lab(0, "ping", "h1", "h3", "-W", "10s", "-c", "1")
	s.lab(1, "ping", "h1", "h2", "-W", "100ms", "-c", "1")

	// One machine cannot: nothing is touched. It is away in the midst: the next apply completes it.
	s.write("net.yaml", text+"x-note: 1\n")
	s.write("half", fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--dry-run*) exec %[1]s \"$@\";; *apply*) cat >/dev/null; echo no room >&2; exit 1;; esac\nexec %[1]s \"$@\"\n", s.weft))
	if err := os.Chmod(s.path("half"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.programOf(name, "m2", s.path("half"))
	if _, said := s.lab(1, "apply", file); !strings.Contains(said, "machine m2 (198.51.100.2): no room") {
		t.Error(said)
	}
	var labs []lab.Status
	if s.labJSON(&labs, "list"); labs[0].State != HalfApplied {
		t.Errorf("%+v", labs)
	}
	s.programOf(name, "m2", s.weft)
	s.lab(0, "apply", file)
	none()
	s.lab(0, "ping", "--all", "-i", "20ms", "-W", "10s", "-c", "1")

	// No node is left on m2.
	s.write("net.yaml", fmt.Sprintf("name: %s\ncontroller: none\nswitches: [{name: s1, fail_mode: standalone}]\nhosts: [{name: h1, switch: s1}, {name: v1, switch: s1, vlan: 7}]\n", name))
	s.lab(0, "apply", file)
	s.nothing(s.servers["m2"].Process.Pid)
	s.lab(0, "down", name)
	s.nothing(s.servers["m1"].Process.Pid)
	s.nothing(s.hub)
}

// pinging pings one host from another for some seconds; what it returns waits for that, and
// returns what ping has said.
func (s *site) pinging(name, from, to string) func() string {
	s.t.Helper()
	cmd := exec.Command("nsenter", "-t", fmt.Sprint(s.hub), "-n", "-m", "--", s.weft, "lab", "exec", from, "--name", name, "--", "ping", "-n", "-i", "0.02", "-c", "400", to)
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return func() string {
		_ = cmd.Wait() // what it has said counts
		return out.String()
	}
}

// vniOf returns the name of the device of a link between the machines.
func (s *site) vniOf(name, link string) string {
	s.t.Helper()
	l := &Lab{}
	if err := json.Unmarshal([]byte(s.out(s.hub, "cat", "/run/weft/testbed/"+name+"/lab.json")), l); err != nil {
		s.t.Fatal(err)
	}
	for _, k := range l.Mapping.Tunnels {
		if k.Link == link {
			return fmt.Sprintf("vxlan%d", k.VNI)
		}
	}
	s.t.Fatalf("%s has no tunnel: %+v", link, l.Mapping.Tunnels)
	return ""
}

// programOf makes what this machine knows of the lab name another program of a machine.
func (s *site) programOf(name, machine, path string) {
	s.t.Helper()
	file := "/run/weft/testbed/" + name + "/lab.json"
	l := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(s.out(s.hub, "cat", file)), &l); err != nil {
		s.t.Fatal(err)
	}
	programs := map[string]string{}
	if err := json.Unmarshal(l["programs"], &programs); err != nil {
		s.t.Fatal(err)
	}
	programs[machine] = path
	var err error
	if l["programs"], err = json.Marshal(programs); err != nil {
		s.t.Fatal(err)
	}
	b, err := json.Marshal(l)
	if err != nil {
		s.t.Fatal(err)
	}
	s.in(s.hub, "cp", s.write("lab.json", string(b)), file)
}
