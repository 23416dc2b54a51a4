package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/traffic"
)

const spreadNet = `name: %s
controller: none
switches:
  - {name: s1, fail_mode: standalone, x-setup: "test -n \"$WEFT_LAB_BRIDGE\" && echo bridge of $WEFT_LAB"}
  - {name: s2, fail_mode: standalone}
hosts:
  - {name: h1, switch: s1, x-setup: echo "of $WEFT_LAB" 'is  set up'}
  - {name: h2, switch: s2, x-setup: echo "no disk" >&2; exit 3}
  - {name: v1, switch: s1, vlan: 7}
  - {name: v2, switch: s1, vlan: 7}   # its switch is on the other machine
links:
  - {a: s1, b: s2}
`

const two = `machines:
  - {name: m1, ssh: "root@198.51.100.1:2201", nodes: [s1, h1, v1]}
  - {name: m2, ssh: "root@198.51.100.2:2202", nodes: [s2, h2, v2], weft: %s}
known_hosts: known_hosts
identity: identity
`

// TestMachines: a lab over two machines, from up to down.
func TestMachines(t *testing.T) {
	t.Parallel()
	s := newSite(t, "m1", "m2")
	name := fmt.Sprintf("tb%d", os.Getpid())
	file, machines := s.write("net.yaml", fmt.Sprintf(spreadNet, name)), s.write("machines.yaml", fmt.Sprintf(two, s.weft))
	none := func() {
		t.Helper()
		for _, k := range []string{"m1", "m2"} {
			s.nothing(s.servers[k].Process.Pid)
		}
		s.nothing(s.hub)
	}

	out, _ := s.lab(0, "up", file, "--machines", machines)
	if !strings.Contains(out, "2 switches, 4 hosts, 1 links") || !strings.Contains(out, "machine m2: 3 nodes, 2 links to others") {
		t.Error(out)
	}
	if _, said := s.lab(1, "up", file); !strings.Contains(said, "is up already, on several machines") {
		t.Error(said)
	}
	var labs []lab.Status
	if s.labJSON(&labs, "list"); len(labs) != 1 || labs[0].State != "up" || labs[0].Switches != 2 || labs[0].Hosts != 4 {
		t.Errorf("%+v", labs)
	}

	// Both families, packets of the whole MTU, and the hosts of a VLAN, one of which has
	// its switch on the other machine.
	if out, _ := s.lab(0, "ping", "--all", "-4", "-6", "-i", "20ms", "-W", "10s"); !strings.Contains(out, "8 pairs, 24 packets sent, 24 received, 0 lost") {
		t.Error(out)
	}
	var pings []traffic.PingResult
	for _, args := range [][]string{{"h1", "h2", "--size", "1472"}, {"v1", "v2", "--size", "1472"}, {"h2", "h1", "-6", "--size", "1452"}} {
		if s.labJSON(&pings, append(append([]string{"ping"}, args...), "-i", "10ms", "-c", "10", "-W", "10s")...); pings[0].Received != 10 {
			t.Errorf("%v", pings)
		}
	}
	if out, _ := s.lab(0, "exec", "h2", "--", "sh", "-c", `echo "a  'b' $0" && hostname -I >/dev/null && grep h1 /etc/hosts`); !strings.Contains(out, "a  'b' sh") || !strings.Contains(out, "10.0.0.1 h1") {
		t.Error(out)
	}
	s.lab(7, "exec", "v1", "--", "sh", "-c", "exit 7")

	if out, said := s.lab(1, "setup"); !strings.Contains(out, "h1    m1       done of "+name+"-m1 is  set up") || !strings.Contains(out, "failed: machine m2 (198.51.100.2): no disk") {
		t.Error(out, said)
	}
	s.lab(0, "setup", "h1")

	// The link between the machines.
	var links []layout.LinkStatus
	var link layout.LinkStatus
	if s.labJSON(&link, "link", "s1", "s2", "down"); link.State != layout.LinkIsDown {
		t.Errorf("%+v", link)
	}
	s.in(s.servers["m2"].Process.Pid, "sh", "-c", `"$1" lab link --name "$2" | grep -q "s2:.*s1:.*down"`, "sh", s.weft, name+"-m2")
	s.lab(1, "ping", "h1", "h2", "-i", "10ms", "-W", "100ms")
	if s.labJSON(&link, "link", "s2", "s1", "up"); link.State != layout.LinkIsUp {
		t.Errorf("%+v", link)
	}
	s.lab(0, "ping", "h1", "h2", "-i", "10ms", "-W", "10s")
	if s.labJSON(&link, "link", "s1", "s2", "set", "--loss", "30%", "--delay", "5ms"); link.Loss != 30 || link.Made != "vxlan" {
		t.Errorf("%+v", link)
	}
	s.labJSON(&links, "link")
	if n := len(links); n != 5 || links[4] != link {
		t.Errorf("%v", links)
	}
	out, _ = s.lab(1, "ping", "h1", "h2", "-i", "5ms", "-c", "100", "-o", "json")
	if lost := strings.Contains(out, `"received": 100`) || strings.Contains(out, `"received": 0`); lost {
		t.Error(out)
	}
	s.lab(0, "link", "s1", "s2", "set", "--loss", "0%")
	var iperf traffic.IperfResult
	if s.labJSON(&iperf, "iperf", "h2", "h1", "-t", "1s"); iperf.Mbit <= 0 {
		t.Errorf("%+v", iperf)
	}
	var shown struct {
		Hosts []struct{ Name, Machine, IPv4 string }
	}
	if s.labJSON(&shown, "show"); len(shown.Hosts) != 4 || shown.Hosts[1].Name != "h2" || shown.Hosts[1].Machine != "m2" || shown.Hosts[1].IPv4 != "10.0.0.2/24" {
		t.Errorf("%+v", shown)
	}
	if _, said := s.lab(1, "nodes"); !strings.Contains(said, "on several machines") {
		t.Error(said)
	}
	if out, _ := s.lab(0, "down", name); !strings.Contains(out, name+" is down") {
		t.Error(out)
	}
	none()

	// What fails on one machine leaves nothing on the other.
	wrong := strings.Replace(fmt.Sprintf(two, s.weft), "known_hosts: known_hosts", "known_hosts: wrong", 1)
	key, err := os.ReadFile(s.path("known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(key), "\n")
	s.write("wrong", first+"\n"+strings.Replace(first, "100.1]:2201", "100.2]:2202", 1)+"\n")
	if _, said := s.lab(1, "up", file, "--machines", s.write("wrong.yaml", wrong)); !strings.Contains(said, "machine m2 (198.51.100.2)") || !strings.Contains(said, "ssh-keygen -R '[198.51.100.2]:2202'") {
		t.Error(said)
	}
	none()
	// m2 has no weft that runs, and so its part does not come up, while that of m1 does.
	s.write("half", "#!/bin/sh\ncase $2 in up) cat >/dev/null; echo no room >&2; exit 1;; list) echo '[]';; *) echo '{}';; esac\n")
	if err := os.Chmod(s.path("half"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, said := s.lab(1, "up", file, "--machines", s.write("half.yaml", fmt.Sprintf(two, s.path("half")))); !strings.Contains(said, "machine m2 (198.51.100.2): no room") {
		t.Error(said)
	}
	none()
	s.interrupted(name, file, machines)
	none()
	// One that answers garbage, without end.
	s.write("half", "#!/bin/sh\nexec yes garbage\n")
	if _, said := s.lab(1, "up", file, "--machines", s.path("half.yaml")); !strings.Contains(said, "more than 16777216 octets") {
		t.Error(said)
	}
	none()
	s.lab(0, "up", file, "--machines", machines)
	// One that is gone while the lab is up: said by list and down, and known until it is back.
	s.in(s.hub, "ip", "route", "add", "unreachable", "198.51.100.2/32")
	if s.labJSON(&labs, "list"); !strings.HasPrefix(labs[0].State, "broken: machine m2") {
		t.Errorf("%+v", labs)
	}
	if _, said := s.lab(1, "down", name); !strings.Contains(said, "may be up still on m2") {
		t.Error(said)
	}
	if _, said := s.lab(1, "up", file, "--machines", machines, "--name", name+"b"); !strings.Contains(said, "machine m2") {
		t.Error(said)
	}
	s.in(s.hub, "ip", "route", "delete", "unreachable", "198.51.100.2/32")
	s.lab(0, "down", name)
	none()
}

// interrupted ends weft lab up when m1 has begun with its part.
func (s *site) interrupted(name, file, machines string) {
	s.t.Helper()
	cmd := exec.Command("nsenter", "-t", fmt.Sprint(s.hub), "-n", "-m", "--", s.weft, "lab", "up", file, "--machines", machines)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.in(s.servers["m1"].Process.Pid, "sh", "-c", `for i in $(seq 1000); do test -d "/run/weft/lab/$1" && exit 0; sleep 0.02; done; exit 1`, "sh", name+"-m1")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		s.t.Error("weft lab up was interrupted, and succeeds")
	}
}
