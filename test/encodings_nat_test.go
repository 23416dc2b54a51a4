package test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// senders returns from whom datagrams have come since the last call, once one of the
// markers that send sends has come.
func (m *mailbox) senders(send func()) (list []netip.Addr) {
	m.t.Helper()
	buf := make([]byte, 4096)
	eventually(m.t, "a marker", func() bool {
		send()
		_ = m.marker.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		_, _, err := m.marker.ReadFrom(buf)
		return err == nil
	})
	for {
		_ = m.count.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, from, err := m.count.ReadFrom(buf)
		if err != nil {
			return list
		}
		at, _ := netip.ParseAddrPort(from.String())
		list = append(list, at.Addr().Unmap())
	}
}

// TestNatEncodings: in no encoding does a packet leave a host inside untranslated, or get from
// outside to a socket inside, but by the rule of a forward.
func TestNatEncodings(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	f := natLab(t, c)
	defer explain(c)
	f.nat(natGateway(f))
	f.nat(natGateway6(f))
	gates := map[bool]flow.MAC{}
	for _, g := range call(c, api.ListNats, &api.ListNatsRequest{}).Gateways {
		mac, err := flow.ParseMAC(g.Mac)
		if err != nil {
			t.Fatal(err)
		}
		gates[strings.Contains(g.Pool, ":")] = mac
	}
	h1, h3, h6 := f.host("h1"), f.host("h3"), f.host("h6")
	pools := []netip.Prefix{netip.MustParsePrefix("198.51.100.0/30"), netip.MustParsePrefix("2001:db8::1:0/124")}
	for _, h := range []string{"h1", "h3"} { // known, so that they are reached
		for _, to := range []string{"198.51.100.9", "2001:db8::9"} {
			eventually(t, h+" pings "+to, func() bool {
				_, err := f.Exec(t.Context(), h, "ping", "-c", "1", "-W", "2", to)
				return err == nil
			})
		}
	}
	in, out := attach(t, f.Lab, "h1"), attach(t, f.Lab, "h6")
	outside, inside := openMailbox(t, f.Lab, "h6"), openMailbox(t, f.Lab, "h3")
	frames := func(to flow.MAC, from, src, dst string, port uint16) []oftest.Encoding {
		mac := flow.MAC(h1.MAC)
		if from == "h6" {
			mac = flow.MAC(h6.MAC)
		}
		tr := oftest.Traffic{SrcMAC: mac, DstMAC: to, Proto: flow.IPProtoUDP,
			Src: netip.AddrPortFrom(netip.MustParseAddr(src), 40000), Dst: netip.AddrPortFrom(netip.MustParseAddr(dst), port)}
		return slices.DeleteFunc(tr.Encodings(), func(e oftest.Encoding) bool { // over the interface's
			return slices.ContainsFunc(e.Frames, func(f []byte) bool { return len(f) > 1514 })
		})
	}
	marker := func(to flow.MAC, dst string) func() {
		frame := frames(to, "h1", h1.IPv4.Addr().String(), dst, 7001)[0].Frames[0]
		return func() { in.send(frame) }
	}
	leaves, enters := marker(gates[false], "198.51.100.9"), marker(flow.MAC(h3.MAC), h3.IPv4.Addr().String())

	translated := map[string]bool{}
	for _, dst := range []string{"198.51.100.9", "2001:db8::9"} {
		v6 := strings.Contains(dst, ":")
		src := h1.IPv4.Addr().String()
		if v6 {
			src = h1.IPv6.Addr().String()
		}
		for name, to := range map[string]flow.MAC{"the gateway": gates[v6], "the next hop": flow.MAC(h6.MAC)} {
			for _, e := range frames(to, "h1", src, dst, 7000) {
				for _, f := range e.Frames {
					in.send(f)
				}
				for _, from := range outside.senders(leaves) {
					if !slices.ContainsFunc(pools, func(p netip.Prefix) bool { return p.Contains(from) }) {
						t.Errorf("out by %s, %s to %s: seen as %v", name, e.Name, dst, from)
					}
					translated[e.Name+" to "+dst] = true
				}
			}
		}
	}
	for _, want := range []string{"plain to 198.51.100.9", "plain to 2001:db8::9"} {
		if !translated[want] {
			t.Errorf("%s was not translated; these were: %v", want, translated)
		}
	}
	for _, src := range []string{"198.51.100.9", "2001:db8::9"} {
		v6 := strings.Contains(src, ":")
		to := map[string]string{"the pool": "198.51.100.1", "the host": h3.IPv4.Addr().String()}
		if v6 {
			to = map[string]string{"the pool": "2001:db8::1:1", "the host": h3.IPv6.Addr().String()}
		}
		for what, dst := range to {
			for name, mac := range map[string]flow.MAC{"the gateway": gates[v6], "the host": flow.MAC(h3.MAC)} {
				for _, e := range frames(mac, "h6", src, dst, 7000) {
					for _, f := range e.Frames {
						out.send(f)
					}
					if got := inside.senders(enters); len(got) > 0 {
						t.Errorf("in by %s to %s, %s: %s", name, what, e.Name, fmt.Sprint(got))
					}
				}
			}
		}
	}
}
