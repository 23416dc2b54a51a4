package topology

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/document"
)

const fullFile = `
name: office
controller: [tcp:127.0.0.1:6653, "tcp:[::1]:6654"]
switches:
  - {name: s1, dpid: 0x1f, protocols: [OpenFlow13], fail_mode: standalone}
  - &plain {name: s2, dpid: 00:00:00:00:00:00:00:02}
  - name: s3
hosts:
  - {name: h1, switch: s1, manage: true, run: [./server --name 'a b', {command: ./server, env: {A: 1, B: ""}, restart: never}]}
  - {name: h2, switch: s2, port: 9, mac: "02:aa:00:00:00:01", ipv4: 192.168.1.7/16, ipv6: none, gateway4: 192.168.0.1, vlan: 12, rate: 10mbit}
links:
  - {a: s1, b: s2, rate: 1.5gbit, delay: 5ms, jitter: 200us, loss: 0.5%, mtu: 9000}
  - {a: s2, b: s3, a_port: 4, b_port: 1}
  - {a: s3, b: s1}
`

func TestParseFile(t *testing.T) {
	topo, err := Parse("office.yaml", []byte(fullFile))
	if err != nil {
		t.Fatal(err)
	}
	if topo.Name != "office" || len(topo.Controllers) != 2 {
		t.Errorf("name %q, controllers %q", topo.Name, topo.Controllers)
	}
	s1, s3 := topo.Switches[0], topo.Switches[2]
	if s1.DPID != 0x1f || s1.FailMode != FailStandalone || len(s1.Protocols) != 1 {
		t.Errorf("s1 = %+v", s1)
	}
	if topo.Switches[1].DPID != 2 || s3.DPID != 3 || s3.FailMode != FailSecure || strings.Join(s3.Protocols, " ") != "OpenFlow10 OpenFlow13" {
		t.Errorf("s2 = %+v, s3 = %+v", topo.Switches[1], s3)
	}
	h1, h2 := topo.Hosts[0], topo.Hosts[1]
	if h1.Port != 1 || h1.IPv4.String() != "10.0.0.1/24" || h1.IPv6.String() != "fd00::1/64" || h1.MAC.String() != "02:00:00:00:00:01" {
		t.Errorf("h1 = %+v", h1)
	}
	if !h1.Manage || h2.Manage {
		t.Errorf("h1 is managed: %v, h2: %v", h1.Manage, h2.Manage)
	}
	if p := h1.Run[0]; len(h1.Run) != 2 || p.Name != "server" || p.Command != "./server --name 'a b'" || p.Restart != RestartAlways {
		t.Errorf("programs of h1 = %+v", h1.Run)
	}
	if p := h1.Run[1]; p.Name != "server-2" || len(p.Env) != 2 || p.Env["A"] != "1" || p.Restart != RestartNever {
		t.Errorf("second program of h1 = %+v", p)
	}
	if h2.Port != 9 || h2.HasIPv6() || h2.VLAN != 12 || h2.Rate != 10e6 || h2.GW4.String() != "192.168.0.1" {
		t.Errorf("h2 = %+v", h2)
	}
	want := Shape{Rate: 1.5e9, Delay: Delay(5 * time.Millisecond), Jitter: Delay(200 * time.Microsecond), Loss: 0.5, MTU: 9000}
	if l := topo.Links[0]; l.Shape != want || l.APort != 2 || l.BPort != 1 {
		t.Errorf("first link = %+v", l)
	}
	if l := topo.Links[1]; l.String() != "s2:4-s3:1" {
		t.Errorf("second link = %v", l)
	}
}

// A topology written as YAML reads back as the same topology.
func TestYAMLRoundTrip(t *testing.T) {
	topo, err := Parse("office.yaml", []byte(fullFile))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(topo)
	if err != nil {
		t.Fatal(err)
	}
	v, err := document.FromJSON(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := v.Readable()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("back.yaml", asYAML)
	if err != nil {
		t.Fatalf("%v in\n%s", err, asYAML)
	}
	again, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(asJSON) {
		t.Errorf("read back\n%s\nwant\n%s", again, asJSON)
	}
}

func TestParseTakesItsNameFromTheFile(t *testing.T) {
	topo, err := Parse("/labs/my net.v2.yaml", []byte("switches: [{name: s1}]"))
	if err != nil || topo.Name != "my-net-v2" {
		t.Errorf("name %q, error %v; want my-net-v2", topo.Name, err)
	}
}

// Keys of other tools may stand in every mapping.
func TestParseLeavesKeysOfOthersAlone(t *testing.T) {
	topo, err := Parse("f", []byte(`
x-measurements: [{name: ping, command: ping -c 1 h2}]
switches:
  - {name: s1, x-position: [10, 20], x-type: {of: [any, "kind"]}}
hosts:
  - name: h1
    switch: s1
    x-setup: |
      sysctl -a
  - {name: h2, switch: s1, eth1: {x-note: 1}, run: [{command: sleep 1, x-note: 2}]}
control: {x-note: 3}
`))
	if err != nil || len(topo.Switches) != 1 || len(topo.Hosts) != 2 {
		t.Errorf("%+v, %v", topo, err)
	}
}

// Every message a bad lab file can give, with its line.
func TestParseProblems(t *testing.T) {
	const two = "switches: [{name: s1}, {name: s2}]\n"
	for name, c := range map[string]struct{ file, want string }{
		"unknown key": {
			"switches:\n  - name: s1\n    dipd: 7\n",
			`f:3: unknown key "dipd" in a switch; allowed: name, dpid, protocols, fail_mode, kind, loopback, loopback6; did you mean dpid?`},
		"unknown top key": {
			two + "nodes: []\n",
			`f:2: unknown key "nodes" in the lab; allowed: name, controller, switches, hosts, links, routing, control, ovs, names`},
		"unknown link key": {
			two + "links:\n- {a: s1, b: s2, latency: 5ms}",
			`f:3: unknown key "latency" in a link; allowed: a, b, a_port, b_port, tunnel, rate, delay, jitter, loss, mtu`},
		"unknown host key": {
			two + "hosts:\n- {name: h1, switch: s1, ip: 10.0.0.1}",
			`f:3: unknown key "ip" in a host; allowed: name, switch, port, mac, ipv4, ipv6, gateway4, gateway6, vlan, gateway, manage, eth1, cpus, tunnel, run, rate, delay, jitter, loss, mtu; did you mean ipv4?`},
		"key twice":          {"name: a\nname: b\n", "f:2: key name is there twice, first on line 1; keep one of them"},
		"syntax":             {"switches: [\n", "f:1: not well-formed YAML: want a value; is a bracket not closed?"},
		"empty":              {"# nothing\n", "f:1: the file is empty; allowed: name, controller, switches, hosts, links, routing, control, ovs, names"},
		"two documents":      {two + "---\nname: x\n", "f:3: a second YAML document: a lab file holds one"},
		"not a mapping":      {"- s1\n", "f:1: the lab is a list, not a mapping of keys to values; allowed: name, controller, switches, hosts, links, routing, control, ovs, names"},
		"switch not mapping": {"switches: [s1]", "f:1: a switch is a text, not a mapping of keys to values; allowed: name, dpid, protocols, fail_mode, kind, loopback, loopback6"},
		"not a list":         {"switches: 7", "f:1: switches is a number: write a list"},
		"not a value":        {two + "name: [x]", "f:2: name is a list: write a single value"},
		"empty value":        {two + "name:", "f:2: name is empty: write a single value"},
		"no switches":        {"name: x\n", "f:1: the topology has no switches: give it at least one"},
		"lab name":           {"name: a.b\n" + two, `f:1: "a.b" is not a name for a lab; allowed: letters, digits, '_', '-', at most 32, beginning with a letter or digit`},
		"switch name":        {"switches: [{name: a/b}]", `f:1: "a/b" is not a name for a switch; allowed: ` + nameRule},
		"no switch name":     {"switches: [{dpid: 1}]", `f:1: "" is not a name for a switch; allowed: ` + nameRule},
		"name twice": {
			"switches:\n- {name: x}\nhosts:\n- {name: x, switch: x}\n",
			"f:4: the name x is already a switch's: names of switches and hosts are distinct"},
		"dpid": {
			"switches: [{name: s1, dpid: zero}]",
			`f:1: dpid: "zero" is not a datapath id: write a number from 1 such as 10, or hexadecimal such as 0xa or 000000000000000a`},
		"dpid zero": {
			"switches: [{name: s1, dpid: 0}]",
			`f:1: dpid: "0" is not a datapath id: write a number from 1 such as 10, or hexadecimal such as 0xa or 000000000000000a`},
		"dpid twice": {
			"switches:\n- {name: s1, dpid: 2}\n- {name: s2, dpid: 0x2}\n",
			"f:3: switch s2 has dpid 0000000000000002, which is already switch s1's"},
		"protocol": {
			"switches: [{name: s1, protocols: [OpenFlow9]}]",
			`f:1: switch s1: "OpenFlow9" is not an OpenFlow version; allowed: OpenFlow10, OpenFlow11, OpenFlow12, OpenFlow13, OpenFlow14, OpenFlow15`},
		"fail mode":  {"switches: [{name: s1, fail_mode: open}]", `f:1: switch s1: "open" is not a fail mode; allowed: secure, standalone`},
		"controller": {"controller: 127.0.0.1:6653\n" + two, `f:1: controller: "127.0.0.1:6653" is not a controller's address; allowed: tcp:HOST:PORT, ssl:HOST:PORT, unix:PATH, direct, none`},
		"controller port": {
			"controller: tcp:127.0.0.1:0\n" + two,
			`f:1: controller: "tcp:127.0.0.1:0" is not a controller's address; allowed: tcp:HOST:PORT, ssl:HOST:PORT, unix:PATH, direct, none`},
		"controller twice":    {"controller: [direct, direct]\n" + two, "f:1: controller direct is named twice"},
		"controller and none": {"controller: [direct, none]\n" + two, "f:1: controller none stands beside others: remove it or them"},
		"unknown switch": {
			two + "links:\n- {a: s1, b: s7}\n",
			`f:3: the link s1 to s7 ends at the unknown switch "s7"; allowed: s1, s2`},
		"link to host": {
			two + "hosts: [{name: h1, switch: s1}]\nlinks:\n- {a: s1, b: h1}\n",
			"f:4: the link s1 to h1 ends at h1, which is a host: links join switches, a host names its switch with `switch:`"},
		"self link":           {two + "links:\n\n- {a: s1, b: s1}\n", "f:4: the link joins switch s1 to itself: name two different switches"},
		"host without switch": {two + "hosts: [{name: h1}]\n", `f:2: host h1 is attached to the unknown switch ""; allowed: s1, s2`},
		"host on host": {
			two + "hosts: [{name: h1, switch: s1}, {name: h2, switch: h1}]\n",
			"f:2: host h2 is attached to h1, which is a host: links join switches, a host names its switch with `switch:`"},
		"port taken": {
			two + "hosts: [{name: h1, switch: s1, port: 3}]\nlinks:\n- {a: s1, b: s2, a_port: 3}\n",
			"f:4: the link to s2: port 3 of switch s1 is already used by host h1"},
		"port range": {two + "hosts: [{name: h1, switch: s1, port: 65280}]\n", `f:2: port: "65280" is not allowed; allowed: a number from 1 to 65279`},
		"port text":  {two + "hosts: [{name: h1, switch: s1, port: eth1}]\n", `f:2: port: "eth1" is not allowed; allowed: a number from 1 to 65279`},
		"mac":        {two + "hosts: [{name: h1, switch: s1, mac: 7}]\n", `f:2: mac: "7" is not an Ethernet address such as 02:00:00:00:00:01`},
		"mac multicast": {
			two + "hosts: [{name: h1, switch: s1, mac: 01:00:00:00:00:01}]\n",
			"f:2: host h1: 01:00:00:00:00:01 cannot be a host's Ethernet address; allowed: a unicast address such as 02:00:00:00:00:01"},
		"mac twice": {
			two + "hosts:\n- {name: h1, switch: s1, mac: 02:00:00:00:00:09}\n- {name: h2, switch: s1, mac: 02:00:00:00:00:09}\n",
			"f:4: host h2 has Ethernet address 02:00:00:00:00:09, which is already host h1's"},
		"ipv4 without length": {
			two + "hosts: [{name: h1, switch: s1, ipv4: 10.0.0.1}]\n",
			`f:2: ipv4: "10.0.0.1" is not an address with its prefix length; allowed: such as 10.0.0.1/24, or none`},
		"ipv4 is ipv6": {
			two + "hosts: [{name: h1, switch: s1, ipv4: fd00::1/64}]\n",
			`f:2: ipv4: "fd00::1/64" is not an address with its prefix length; allowed: such as 10.0.0.1/24, or none`},
		"ipv6": {
			two + "hosts: [{name: h1, switch: s1, ipv6: fd00::1}]\n",
			`f:2: ipv6: "fd00::1" is not an address with its prefix length; allowed: such as fd00::1/64, or none`},
		"address twice": {
			two + "hosts:\n- {name: h1, switch: s1, ipv4: 10.0.0.5/24}\n- {name: h2, switch: s1, ipv4: 10.0.0.5/8}\n",
			"f:4: host h2 has address 10.0.0.5, which is already host h1's"},
		"network address": {
			two + "hosts: [{name: h1, switch: s1, ipv4: 10.0.0.255/24}]\n",
			"f:2: host h1: 10.0.0.255/24 cannot be a host's address: it is a network, broadcast, multicast or loopback address"},
		"gateway": {
			two + "hosts: [{name: h1, switch: s1, ipv4: 10.0.0.1/24, gateway4: 10.0.1.1}]\n",
			"f:2: host h1: gateway4 10.0.1.1 cannot be reached from 10.0.0.1/24; allowed: an address inside 10.0.0.0/24"},
		"gateway text":        {two + "hosts: [{name: h1, switch: s1, gateway4: r}]\n", `f:2: gateway4: ParseAddr("r"): unable to parse IP`},
		"vlan":                {two + "hosts: [{name: h1, switch: s1, vlan: 4095}]\n", `f:2: vlan: "4095" is not allowed; allowed: a number from 1 to 4094`},
		"manage":              {two + "hosts:\n- {name: h1, switch: s1, manage: eth1}\n", `f:3: manage: "eth1" is not allowed; allowed: true, false`},
		"programs not a list": {two + "hosts:\n- {name: h1, switch: s1, run: sleep 9}\n", "f:3: run is a text: write a list"},
		"program no command":  {two + "hosts:\n- {name: h1, switch: s1, run: [{name: x}]}\n", `f:3: host h1: the command "" cannot be run: it is empty`},
		"program key": {
			two + "hosts:\n- name: h1\n  switch: s1\n  run:\n  - {cmd: ls}\n",
			"f:6: unknown key \"cmd\" in a program; allowed: name, command, env, restart"},
		"program for a shell": {
			two + "hosts:\n- {name: h1, switch: s1, run: [ls | wc]}\n",
			`f:3: host h1: the command "ls | wc" cannot be run: '|' is for a shell: quote it, or write sh -c '…'`},
		"program name": {
			two + "hosts:\n- {name: h1, switch: s1, run: [{name: ../x, command: ls}]}\n",
			`f:3: host h1: "../x" is not a name for a program; allowed: ` + nameRule},
		"program twice": {
			two + "hosts:\n- {name: h1, switch: s1, run: [{name: x, command: ls}, {name: x, command: ls}]}\n",
			"f:3: host h1 has two programs x: give one another name"},
		"restart": {
			two + "hosts:\n- {name: h1, switch: s1, run: [{command: ls, restart: yes}]}\n",
			`f:3: host h1, program ls: restart "yes"; allowed: always, on-failure, never`},
		"env":       {two + "hosts:\n- {name: h1, switch: s1, run: [{command: ls, env: [A=1]}]}\n", "f:3: env is a list, not a mapping of names to values"},
		"env value": {two + "hosts:\n- {name: h1, switch: s1, run: [{command: ls, env: {A: [1]}}]}\n", "f:3: A is a list: write a single value"},
		"env name": {
			two + "hosts:\n- {name: h1, switch: s1, run: [{command: ls, env: {WEFT_LAB_DIR: /x}}]}\n",
			`f:3: host h1, program ls: "WEFT_LAB_DIR" is not a name for a variable; allowed: ` + envRule},
		"rate": {
			two + "links:\n- {a: s1, b: s2, rate: 100Mb/s}\n",
			`f:3: rate: "100Mb/s": want a rate: a number with K, M, G or T (bit/s), or with bit, kbit, mbit, gbit or tbit, such as 100M, 2.5G or 100mbit`},
		"delay":  {two + "links:\n- {a: s1, b: s2, delay: 5}\n", `f:3: delay: "5" is not a delay: write a number and us, ms or s, such as 5ms, at most 10s`},
		"jitter": {two + "links:\n- {a: s1, b: s2, jitter: 1h}\n", `f:3: jitter: "1h" is not a delay: write a number and us, ms or s, such as 5ms, at most 10s`},
		"loss":   {two + "links:\n- {a: s1, b: s2, loss: 101%}\n", `f:3: loss: "101%" is not a percentage: write a number from 0% to 100%, such as 1%`},
		"mtu":    {two + "links:\n- {a: s1, b: s2, mtu: 100}\n", `f:3: mtu: "100" is not allowed; allowed: a number from 1280 to 9216`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.file))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestParseReportsEveryProblemInOrder(t *testing.T) {
	_, err := Parse("f", []byte("switches:\n- {name: s1, x: 1}\n- {name: s2, y: 1}\nlinks:\n- {a: s1, b: s2, loss: lots}\n"))
	var lines []string
	for _, l := range strings.Split(err.Error(), "\n") {
		lines = append(lines, l[:3])
	}
	if strings.Join(lines, " ") != "f:2 f:3 f:5" {
		t.Errorf("problems:\n%v", err)
	}
}

func TestLoadReadsAliases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	text := "switches: [{name: s1}, {name: s2}]\nlinks:\n- {a: s1, b: s2, delay: &d 5ms}\n- {a: s1, b: s2, delay: *d}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	topo, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if topo.Links[1].Delay != Delay(5*time.Millisecond) {
		t.Errorf("aliased delay is %v", topo.Links[1].Delay)
	}
}

// What Go code can set wrong and a file cannot.
func TestCheckProblems(t *testing.T) {
	two := func() *Topology {
		topo, err := Linear(2, 1)
		if err != nil {
			t.Fatal(err)
		}
		return topo
	}
	for name, c := range map[string]struct {
		change func(*Topology)
		want   string
	}{
		"loss":       {func(t *Topology) { t.Links[0].Loss = -1 }, "the link s1 to s2: loss -1%; allowed: 0% to 100%"},
		"delay":      {func(t *Topology) { t.Links[0].Delay = -1 }, "the link s1 to s2: delay -1ns, jitter 0s; allowed: 0s to 10s"},
		"rate":       {func(t *Topology) { t.Hosts[0].Rate = 7 }, "host h1: rate 7bit; allowed: 8kbit and more"},
		"mtu":        {func(t *Topology) { t.Hosts[0].MTU = 1 }, "host h1: mtu 1; allowed: 1280 to 9216"},
		"vlan":       {func(t *Topology) { t.Hosts[0].VLAN = 4095 }, "host h1: VLAN 4095 does not exist; allowed: 1 to 4094"},
		"port":       {func(t *Topology) { t.Hosts[0].Port = 0xff00 }, "host h1: switch s1 cannot have port 65280; allowed: 1 to 65279"},
		"controller": {func(t *Topology) { t.Controllers[0] = "x" }, `"x" is not a controller's address; allowed: tcp:HOST:PORT, ssl:HOST:PORT, unix:PATH, direct, none`},
		"ipv4":       {func(t *Topology) { t.Hosts[0].IPv4 = t.Hosts[0].IPv6 }, "host h1 has address fd00::1, which is already host h1's"},
	} {
		t.Run(name, func(t *testing.T) {
			topo := two()
			c.change(topo)
			if err := Check(topo); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
