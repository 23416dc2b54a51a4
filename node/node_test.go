package node

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

func pe1(socket string) Node {
	return Node{
		Name: "pe1", Management: socket, Protected: []netip.Prefix{netip.MustParsePrefix("198.18.0.0/31"), netip.MustParsePrefix("fd00:c::/64")},
		Ports: []Port{{Port: 1, Interface: "e1", Internal: 101, InternalInterface: "i1", Customer: true}, {Port: 2, Interface: "e2", Internal: 102, InternalInterface: "i2"}},
	}
}

// bridgeAt serves a switch at a socket as Open vSwitch does, until the test or
// the returned function ends it.
func bridgeAt(t *testing.T, socket string) (*oftest.Device, func()) {
	t.Helper()
	d := oftest.NewDevice(oftest.Config{DPID: 1, Versions: []openflow.Version{openflow.V13}}, func(oftest.Frame) {})
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = d.Serve(ctx, c) }()
		}
	}()
	end := func() { l.Close(); cancel(); d.Disconnect() }
	t.Cleanup(end)
	return d, end
}

func own(d *oftest.Device) (n int) {
	for _, f := range d.Flows() {
		if f.Cookie == flow.NodeCookie {
			n++
		}
	}
	return n
}

// TestEntriesAreKept: the bridge has the node's entries as soon as it is there,
// after somebody has removed them, and after it was restarted; others are left alone.
func TestEntriesAreKept(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "br.mgmt")
	n := pe1(socket)
	if !n.Dark(t.Context()) {
		t.Error("a node whose bridge is not there is not dark")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	k := &keeping{Node: &n, log: slog.New(slog.DiscardHandler)}
	go func() { k.keepEntries(ctx); close(done) }()
	defer func() { cancel(); <-done }()

	d, end := bridgeAt(t, socket)
	want := len(n.Entries())
	testwait.Until(t, "all entries there", func() bool { return own(d) == want })
	if n.Dark(t.Context()) {
		t.Error("a node with all its entries is dark")
	}
	send, detach := d.Attach(func([]byte) {})
	mod := func(m flow.Mod) {
		t.Helper()
		m.BufferID, m.OutPort, m.OutGroup = flow.BufferNone, flow.PortAny, flow.GroupAny
		msg, err := openflow.V13.AppendFlowMod(nil, 1, &m)
		if err != nil {
			t.Fatal(err)
		}
		send(msg)
	}
	send(openflow.V13.AppendHello(nil, 1, openflow.V13))
	mod(flow.Mod{Command: flow.Delete, Entry: flow.Entry{Table: flow.TableAll}})
	foreign := flow.Entry{Table: 0, Priority: flow.PriorityOperator, Match: flow.Match{}.WithInPort(9)}
	mod(flow.Mod{Command: flow.Add, Entry: foreign})
	stale := n.Entries()[0]
	stale.Match = flow.Match{}.WithInPort(77)
	mod(flow.Mod{Command: flow.Add, Entry: stale})
	testwait.Until(t, "all entries back, and one of a port that is gone removed", func() bool { return own(d) == want })
	if len(d.Flows()) != want+1 {
		t.Errorf("%d entries, want %d and a foreign one", len(d.Flows()), want)
	}
	detach()

	end()
	d, _ = bridgeAt(t, socket)
	testwait.Until(t, "all entries there after a restart", func() bool { return own(d) == want })
}

// TestEntries: what is to come through at which port.
func TestEntries(t *testing.T) {
	n := pe1("/x")
	guards, pairs := map[flow.Port]int{}, map[flow.Port]flow.Port{}
	for _, e := range n.Entries() {
		if e.IdleTimeout|e.HardTimeout != 0 {
			t.Errorf("an entry ends by itself: %+v", e)
		}
		in := flow.Port(e.Match.Key.InPort)
		switch e.Priority {
		case flow.PriorityCoexist:
			pairs[in] = flow.Port(e.Apply[0].Arg)
		case flow.PriorityCoexistGuard:
			if guards[in]++; len(e.Apply) > 0 {
				t.Errorf("a guard passes something on: %+v", e)
			}
		}
	}
	if len(pairs) != 4 || pairs[1] != 101 || pairs[101] != 1 || pairs[2] != 102 || pairs[102] != 2 {
		t.Errorf("pairs = %v", pairs)
	}
	if len(guards) != 1 || guards[1] != 2*4+2 { // OSPF and three ports of BFD in both families, and two prefixes
		t.Errorf("guards = %v", guards)
	}
}

// TestReadConfig: a file of people, and every message of one that is wrong.
func TestReadConfig(t *testing.T) {
	read := func(text string) (*Config, error) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "n")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ReadConfig(path)
		if err != nil {
			return nil, &net.AddrError{Err: strings.ReplaceAll(err.Error(), path, "n")}
		}
		return c, nil
	}
	c, err := read("nodes:\n- name: pe1\n  management: /br0.mgmt\n  protected: [192.0.2.0/24]\n  ports:\n  - {port: 1, interface: e1, internal: 101, internal_interface: i1, customer: true}\n")
	if err != nil || len(c.Nodes) != 1 || !c.Nodes[0].Ports[0].Customer || c.Nodes[0].Protected[0].Bits() != 24 {
		t.Errorf("%+v, %v", c, err)
	}
	const port = "{port: 1, interface: e1, internal: 101, internal_interface: i1}"
	for text, want := range map[string]string{
		"":                      "want a mapping with the key nodes",
		"nodes: []":             "nodes: there is none",
		"switches: []":          `unknown field "switches"`,
		"nodes: [{name: a, x":   "not well-formed YAML",
		"nodes: [{name: pe1}]":  `node pe1: management ""`,
		"nodes: [{name: 7}]":    "cannot unmarshal number",
		"nodes: [{ports: [7]}]": "cannot unmarshal number",
		"nodes: [{name: a, management: /a}, {name: a, management: /b}]":                                                            "node a stands twice",
		"nodes: [{name: a, management: /a}, {name: b, management: /a}]":                                                            "node b has the bridge of another",
		"nodes: [{name: a, management: /a, namespace: ../x}]":                                                                      `namespace "../x"`,
		"nodes: [{name: a, management: /a, protected: [10.0.0.1/8]}]":                                                              "want prefixes such as",
		"nodes: [{name: a, management: /a, ports: [{port: 0, internal: 1, interface: a, internal_interface: b}]}]":                 "port 0: want a number from 1 to 65279",
		"nodes: [{name: a, management: /a, ports: [" + port + ", {port: 1, internal: 2, interface: a, internal_interface: b}]}]":   "port 1: want a number",
		"nodes: [{name: a, management: /a, ports: [" + port + ", {port: 3, internal: 2, interface: e1, internal_interface: b}]}]":  `interface "e1"`,
		"nodes: [{name: a, management: /a, ports: [{port: 3, internal: 2, interface: abcdefghijklmnopq, internal_interface: b}]}]": `interface "abcdefghijklmnopq"`,
		"nodes: [{name: a, management: /a, ports: [" + port + "]}, {name: b, management: /b, ports: [" + port + "]}]":              `node b: port 1: interface "e1"`,
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got  %v\n want %s", text, err, want)
		}
	}
}
