package topology

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

const nodesFile = `
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

func TestParseNodes(t *testing.T) {
	topo, err := Parse("f", []byte(nodesFile))
	if err != nil {
		t.Fatal(err)
	}
	pe1, cr1, b1 := topo.Switches[0], topo.Switches[1], topo.Switches[3]
	if pe1.Loopback != Loopback4(1) || pe1.Loopback6 != loopback6(1) || pe1.DPID != 1 || pe1.FailMode != FailSecure {
		t.Errorf("pe1 = %+v", pe1)
	}
	if cr1.Loopback.String() != "10.9.9.9" || cr1.DPID != 0 || topo.Switches[2].Loopback != Loopback4(3) || b1.Loopback.IsValid() {
		t.Errorf("cr1 = %+v, b1 = %+v", cr1, b1)
	}
	if r := topo.Routing; r.Hello != Seconds(5*time.Second) || r.Dead != Seconds(20*time.Second) || r.BFD != Delay(100*time.Millisecond) {
		t.Errorf("routing = %+v", r)
	}
	ce1, ce2, cx1 := topo.Hosts[0], topo.Hosts[1], topo.Hosts[2]
	if ce1.IPv4.String() != "10.64.1.2/24" || ce1.GW4.String() != "10.64.1.1" || ce1.GW6.String() != "fd00:64:0:1::1" {
		t.Errorf("ce1 = %+v", ce1)
	}
	if ce2.GW4.String() != "192.0.2.2" || ce2.GW6.IsValid() || cx1.IPv4.String() != "10.0.0.3/24" || cx1.GW4.IsValid() {
		t.Errorf("ce2 = %+v, cx1 = %+v", ce2, cx1)
	}
	text, err := json.Marshal(topo)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, new(Topology)); err != nil {
		t.Errorf("as the lab's state: %v", err)
	}
	again, err := Parse("f", text)
	if err != nil {
		t.Fatal(err)
	}
	if clear := unread(again); !reflect.DeepEqual(clear, unread(topo)) {
		t.Errorf("written and read again:\n%+v\nwant\n%+v", clear, unread(topo))
	}
}

// unread returns the topology without where it was read.
func unread(t *Topology) *Topology {
	c := t.Clone()
	c.line, c.text = 0, nil
	for i := range c.Switches {
		c.Switches[i].line = 0
	}
	for i := range c.Hosts {
		c.Hosts[i].line, c.Hosts[i].Run = 0, nil
	}
	for i := range c.Links {
		c.Links[i].line = 0
	}
	return c
}

// Every message that a lab file with nodes can give.
func TestNodeProblems(t *testing.T) {
	const two = "switches:\n- {name: p, kind: hybrid}\n- {name: r, kind: router}\n- {name: b, kind: bridge}\n- {name: s}\n"
	for name, c := range map[string]struct{ file, want string }{
		"kind":               {"switches: [{name: p, kind: OSHI}]", `f:1: switch p: "OSHI" is not a kind of switch; allowed: openflow, hybrid, router, bridge`},
		"router with dpid":   {"switches: [{name: p, kind: router, dpid: 7}]", "f:1: switch p is a router, which connects to no controller: remove dpid, protocols and fail_mode"},
		"standalone":         {"switches: [{name: p, kind: hybrid, fail_mode: standalone}]", "f:1: switch p: without a controller a hybrid node routes, and would forward between customers in fail mode standalone; allowed: secure"},
		"OpenFlow 1.0":       {"switches: [{name: p, kind: hybrid, protocols: [OpenFlow10]}]", "f:1: switch p: a hybrid node needs protocol OpenFlow13, by which its own entries are written"},
		"loopback":           {"switches: [{name: p, kind: hybrid, loopback: x}]", `f:1: loopback: "x" is not an address; allowed: such as 10.255.0.1`},
		"loopback of switch": {"switches: [{name: s, loopback: 10.255.0.1}]", "f:1: switch s is an OpenFlow switch, which has no IP addresses: remove loopback, or say kind: hybrid or kind: router"},
		"loopback v6":        {"switches: [{name: p, kind: hybrid, loopback: fd00::1}]", "f:1: switch p: loopback fd00::1; allowed: an IPv4 address as loopback, an IPv6 address as loopback6"},
		"loopback multicast": {"switches: [{name: p, kind: hybrid, loopback: 224.0.0.1}]", "f:1: switch p: 224.0.0.1 cannot be a node's address: it is a multicast, loopback, link-local or unspecified address"},
		"loopback twice":     {"switches:\n- {name: p, kind: hybrid, loopback: 10.1.1.1}\n- {name: q, kind: router, loopback: 10.1.1.1}", "f:3: the loopback of p (10.1.1.1/32) and the loopback of q (10.1.1.1/32) have addresses in common: give one of them others"},
		"ipv4 only":          {"switches: [{name: p, kind: hybrid, loopback6: fd00::1}]\nrouting: {ipv4_only: true}", "f:1: switch p has a loopback6, and routing is ipv4_only: remove one of them"},
		"routing of none":    {"switches: [{name: s}]\nrouting: {hello: 1s}", "f:1: routing is for hybrid nodes and routers, and there is none: remove it, or give a switch kind: hybrid or kind: router"},
		"hello":              {two + "routing: {hello: 100ms}", `f:6: hello: "100ms" is not allowed; allowed: 1s to 65535s, in whole seconds`},
		"dead":               {two + "routing: {hello: 3s, dead: 2s}", "f:1: routing: neighbours are given up after 2s, and say hello every 3s: give dead a longer time"},
		"bfd":                {two + "routing: {bfd: often}", `f:6: bfd: "often" is not allowed; allowed: a time such as 50ms, true, none`},
		"bfd too often":      {two + "routing: {bfd: 1ms}", "f:1: routing: bfd 1ms; allowed: 10ms to 1m, in whole milliseconds, or none"},
		"control mode":       {two + "control: {mode: inband}", `f:1: control: mode "inband"; allowed: in-band, out-of-band`},
		"control of none":    {"switches: [{name: s}]\ncontrol: {mode: in-band, at: s}", "f:1: control is for hybrid nodes, and there is none: remove it, or give a switch kind: hybrid"},
		"control nowhere":    {two + "control: {mode: in-band}", "f:1: control: mode in-band needs at: the hybrid node or router that the controllers' machine is linked to"},
		"control at":         {two + "control: {at: p}", "f:1: control: at p has no meaning unless mode is in-band: say mode: in-band, or remove at"},
		"control at none":    {two + "control: {mode: in-band, at: x}", `f:1: control: at names the unknown switch "x"; allowed: p, r, b, s`},
		"control at switch":  {two + "control: {mode: in-band, at: s}", "f:1: control: at s, which is an OpenFlow switch; allowed: a hybrid node or router"},
		"control direct":     {two + "controller: direct\ncontrol: {mode: in-band, at: p}", "f:1: control: a controller that is direct cannot be reached in band; allowed: tcp:HOST:PORT, ssl:HOST:PORT, unix:PATH, none"},
		"control key":        {two + "control: {via: p}", `f:6: unknown key "via" in control; allowed: mode, at`},
		"ovs":                {two + "ovs: each", `f:1: ovs: "each"; allowed: shared, own`},
		"own of none":        {"switches: [{name: s}]\novs: own", "f:1: ovs: own is for hybrid nodes, and there is none: remove it, or give a switch kind: hybrid"},
		"gateway of switch":  {two + "hosts: [{name: h, switch: s, gateway: true}]", "f:6: host h has a gateway, and s is an OpenFlow switch, which does not route: attach it to a hybrid node or router"},
		"host of router":     {two + "hosts: [{name: h, switch: r}]", "f:6: host h: a router passes on nothing but IP: say gateway: true"},
		"gateway and vlan":   {two + "hosts: [{name: h, switch: p, gateway: true, vlan: 3}]", "f:6: host h has vlan 3 and a gateway, which takes untagged packets: remove one of them"},
		"no address":         {two + "hosts: [{name: h, switch: p, gateway: true, ipv4: none, ipv6: none}]", "f:6: host h has a gateway, and no address: give it ipv4 or ipv6"},
		"no room":            {two + "hosts: [{name: h, switch: p, gateway: true, ipv4: 10.1.1.1/32}]", "f:6: host h: there is no address for its gateway in 10.1.1.1/32 and fd00:64:0:1::2/64; allowed: a shorter prefix"},
		"own gateway":        {two + "hosts: [{name: h, switch: p, gateway: true, ipv4: 10.1.1.1/24, gateway4: 10.1.1.1}]", "f:6: host h has the address of its gateway: give one of them another"},
		"same network":       {two + "hosts:\n- {name: h, switch: p, gateway: true, ipv4: 10.1.1.5/24}\n- {name: i, switch: r, gateway: true, ipv4: 10.1.0.7/16}", "f:8: the network of host i (10.1.0.0/16) and the network of host h (10.1.1.0/24) have addresses in common: give one of them others"},
		"internal port":      {two + "hosts: [{name: h, switch: p, port: 10001}]", "f:6: host h: port 10001 of hybrid node p: those above are internal ports; allowed: 1 to 9999"},
		"internal link port": {two + "links: [{a: r, b: p, b_port: 10001}]", "f:6: the link to r: port 10001 of hybrid node p: those above are internal ports; allowed: 1 to 9999"},
		"link to switch":     {two + "links: [{a: p, b: s}]", "f:6: the link p to s joins a hybrid node and an OpenFlow switch: IP routing has no neighbour there; allowed: links of nodes that route to hybrid, router and bridge switches"},
		"loop":               {two + "links: [{a: b, b: c}, {a: c, b: b}]\n", ""},
		"twice in a network": {two + "links:\n- {a: p, b: b}\n- {a: p, b: b}", "f:8: p has two links to the bridges b: a node has one address in a network"},
		"mixed network":      {two + "links:\n- {a: p, b: b}\n- {a: s, b: b}", "f:4: the bridges b join p, which routes, and the OpenFlow switch s: remove one of the links"},
	} {
		if c.want == "" {
			c.file = "switches:\n- {name: b, kind: bridge}\n- {name: c, kind: bridge}\n" + strings.TrimPrefix(c.file, two)
			c.want = "f:2: the bridges b, c form a loop, in which frames would go round for ever: remove a link"
		}
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.file))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
