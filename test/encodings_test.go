package test

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/openflow/oftest"
)

// mailbox is two UDP sockets of a host: one that counts, and one by which it is known that
// all that was sent before has come.
type mailbox struct {
	t             *testing.T
	count, marker net.PacketConn
}

func openMailbox(t *testing.T, l *lab.Lab, host string) *mailbox {
	m := &mailbox{t: t}
	err := inHost(l, host, func() (err error) {
		if m.count, err = net.ListenPacket("udp", ":7000"); err == nil {
			m.marker, err = net.ListenPacket("udp", ":7001")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.count.Close(); m.marker.Close() })
	return m
}

// got returns how many datagrams have come since the last call, once one of the markers
// that send sends has come.
func (m *mailbox) got(send func()) (n int) {
	m.t.Helper()
	buf := make([]byte, 4096)
	for end := time.Now().Add(patience); ; {
		send()
		_ = m.marker.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, _, err := m.marker.ReadFrom(buf); err == nil {
			break
		}
		if time.Now().After(end) {
			m.t.Fatal("no marker comes")
		}
	}
	for {
		_ = m.count.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, _, err := m.count.ReadFrom(buf); err != nil {
			return n
		}
		n++
	}
}

// TestEncodings: real sockets behind real switches get no encoding of what a rule denies, and
// of what a chain blocks whose function swallows all, or is dead.
func TestEncodings(t *testing.T) {
	t.Parallel()
	topo, err := topology.Linear(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	topo.Hosts = append(topo.Hosts, topology.Host{Name: "f1", Switch: "s2", Eth1: &topology.Attachment{Switch: "s2"}, IPv4: topology.NoIPv4(), IPv6: topology.NoIPv6()})
	c := start(t, options{})
	l := bring(t, topo, c)
	settled(c, l)
	h1, h2, f1 := lookup(t, l, "h1"), lookup(t, l, "h2"), lookup(t, l, "f1")
	for _, v6 := range []bool{false, true} {
		if !passes(t, l, "h1", "h2", v6) {
			t.Fatal("h1 does not reach h2")
		}
	}
	w, box := attach(t, l, "h1"), openMailbox(t, l, "h2")
	traffic := func(v6 bool, port uint16) oftest.Traffic {
		src, dst := h1.IPv4.Addr(), h2.IPv4.Addr()
		if v6 {
			src, dst = h1.IPv6.Addr(), h2.IPv6.Addr()
		}
		return oftest.Traffic{SrcMAC: flow.MAC(h1.MAC), DstMAC: flow.MAC(h2.MAC), Proto: flow.IPProtoUDP,
			Src: netip.AddrPortFrom(src, 40000), Dst: netip.AddrPortFrom(dst, port)}
	}
	marker := traffic(false, 7001).Encodings()[0].Frames[0]
	// arrived sends all encodings, and returns the names of those that have come.
	arrived := func() (names []string) {
		for _, v6 := range []bool{false, true} {
			for _, e := range traffic(v6, 7000).Encodings() {
				if slices.ContainsFunc(e.Frames, func(f []byte) bool { return len(f) > 1514 }) {
					continue // over the interface's
				}
				for _, f := range e.Frames {
					w.send(f)
				}
				if n := box.got(func() { w.send(marker) }); n > 0 {
					names = append(names, fmt.Sprintf("%s (IPv6 %v)", e.Name, v6))
				}
			}
		}
		return names
	}
	plain := func(v6 bool) []byte { return traffic(v6, 7000).Encodings()[0].Frames[0] }
	// closed waits until the datapaths have followed, and checks that nothing comes.
	closed := func(what string) {
		t.Helper()
		eventually(t, what, func() bool {
			w.send(plain(false))
			w.send(plain(true))
			return box.got(func() { w.send(marker) }) == 0
		})
		if names := arrived(); len(names) > 0 {
			t.Errorf("%s is passed by %s", what, strings.Join(names, "; "))
		}
	}

	free := arrived()
	t.Logf("without a policy: %s", strings.Join(free, "; "))
	if len(free) < 30 {
		t.Errorf("only %d encodings get there", len(free))
	}
	call(c, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{{Id: "no", Action: "deny", Match: map[string]string{"udp_dst": "7000"}}}})
	closed("a rule that denies")
	call(c, api.DeleteFirewallRules, &api.DeleteFirewallRulesRequest{Ids: []string{"no"}})
	for i, match := range []map[string]string{{"eth_type": "0x0800", "ipv4_dst": h2.IPv4.Addr().String()}, {"eth_type": "0x86dd", "ipv6_dst": h2.IPv6.Addr().String()}} {
		match["ip_proto"], match["udp_dst"] = "17", "7000"
		at := &api.Location{Dpid: dpid(t, l, "s2"), Port: uint32([]uint16{f1.Port, f1.Eth1.Port}[i])}
		call(c, api.SetChain, &api.SetChainRequest{Chain: &api.ServiceChain{Name: fmt.Sprintf("c%d", i), Match: match, OnFailure: "block",
			Functions: []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: at}}}}}})
	}
	closed("a chain that swallows")
	for _, eth := range []string{"eth0", "eth1"} {
		if _, err := l.Exec(t.Context(), "f1", "ip", "link", "set", eth, "down"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "functions dead", func() bool {
		for _, m := range call(c, api.ListChains, &api.ListChainsRequest{}).Chains {
			if m.State != "blocked" {
				return false
			}
		}
		return true
	})
	closed("a chain that is dead")
}
