package scp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/sbi"
	"github.com/weft-sdn/weft/wefttest"
)

// TestWire: consumers reach a front without a host as if it were the NRF, which
// they reach by it; it knows them by their own addresses.
func TestWire(t *testing.T) {
	for _, c := range []struct {
		v6   bool
		vlan int
	}{{false, 0}, {true, 0}, {false, 7}} {
		t.Run(fmt.Sprintf("v6=%v,vlan=%d", c.v6, c.vlan), func(t *testing.T) {
			before := runtime.NumGoroutine()
			n := newNetwork(t, c.v6, func(cfg *Config) { cfg.VLAN = c.vlan })
			n.register(5, sbi.UDM)
			n.register(6, sbi.UDM)
			n.register(2, sbi.AMF)
			status, body, err := n.do(2, "GET", discoverUDM, "")
			var found sbi.SearchResult
			if err != nil || status != 200 || json.Unmarshal([]byte(body), &found) != nil || len(found.NFInstances) != 1 {
				t.Fatalf("discovery: %d %s %v", status, body, err)
			}
			if status, _, err := n.do(2, "GET", strings.Replace(discoverUDM, "AMF", "SMF", 1), ""); status != 403 {
				t.Errorf("an AMF that says it is an SMF: %d, %v", status, err)
			}
			if status, _, err := n.do(2, "DELETE", "/nnrf-nfm/v1/nf-instances/"+id(5), ""); status != 403 {
				t.Errorf("deregisters another: %d, %v", status, err)
			}
			// A restart resets connections, and the next works.
			web := n.host(2).web(n.wire.nrf)
			if status, _, err := ask(web, "GET", n.cfg.NRF+discoverUDM, ""); status != 200 {
				t.Fatalf("status %d, %v", status, err)
			}
			n.stop()
			n.start()
			n.eventually("the consumer is served again", func() bool {
				status, _, _ := ask(web, "GET", n.cfg.NRF+discoverUDM, "")
				return status == 200
			})
			web.CloseIdleConnections()
			n.stop()
			n.stop = func() {}
			if n.wire.open.Load() {
				t.Error("open after its end")
			}
			n.eventually("nothing of the front is left", func() bool { return runtime.NumGoroutine() < before+60 }) // the hosts are
		})
	}
}

// TestWireFlood: a host that floods the front takes its own share, by one address or
// by many, and leaves others theirs.
func TestWireFlood(t *testing.T) {
	for _, addresses := range []int{1, 1000} {
		t.Run(fmt.Sprint(addresses), func(t *testing.T) {
			n := newNetwork(t, false, func(cfg *Config) { cfg.Connections, cfg.PacketRate = 64, 1000 })
			n.register(5, sbi.UDM)
			n.mu.Lock()
			n.hosts[9] = &netHost{n: 9, addr: n.addr(9)} // it takes no answers
			n.mu.Unlock()
			for i := range 5000 {
				from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i % addresses >> 8), byte(i % addresses)}), uint16(1024+i))
				n.send(9, n.synFrame(9, from, packet.TCPSyn))
			}
			at, most := flow.Location{Switch: 1, Port: 9}, n.cfg.Connections/portPart
			n.eventually("the flood has its share", func() bool { return n.wire.conns.all.Len() >= most })
			n.wire.mu.Lock()
			peers := n.wire.at[at].peers
			n.wire.mu.Unlock()
			if open := n.wire.conns.all.Len(); open > most || peers > most {
				t.Errorf("%d connections and %d peers of one port, want at most %d", open, peers, most)
			}
			if status, body, err := n.do(2, "GET", discoverUDM, ""); status != 200 {
				t.Errorf("another host: %d %s %v", status, body, err)
			}
			if l := n.wire.reached.List(time.Now().UnixNano()); len(l) == 0 || !strings.HasPrefix(l[0].Key, "scp.") || l[0].Who == "" {
				t.Errorf("health learns %v", l)
			}
			for _, why := range map[int][]string{1: {"full", "rate"}, 1000: {"addresses", "rate"}}[addresses] {
				if n.counts[why].sum() == 0 {
					t.Errorf("none refused because of %s", why)
				}
			}
		})
	}
}

// TestWireHeld: connections of which nothing is read, and that are silent, take
// their host's share and no one else's.
func TestWireHeld(t *testing.T) {
	n := newNetwork(t, false, func(cfg *Config) { cfg.Connections = 32 })
	n.register(5, sbi.UDM)
	h := n.host(9)
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		c, err := h.stack.dial(ctx, n.wire.nrf)
		cancel()
		if err != nil {
			continue
		}
		defer c.Close()
		_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		for i := range 500 {
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nX: %d\r\n\r\n", discoverUDM, i); err != nil {
				break
			}
		}
	}
	if open, most := n.wire.conns.all.Len(), n.cfg.Connections/portPart; open > most+1 { // one may be another host's
		t.Errorf("%d connections of one host, want %d", open, most)
	}
	if status, body, err := n.do(2, "GET", discoverUDM, ""); status != 200 {
		t.Errorf("another host: %d %s %v", status, body, err)
	}
}

// TestWireTruncated: segments that are cut, or whose sums are wrong, do no harm.
func TestWireTruncated(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		n := newNetwork(t, v6)
		n.register(5, sbi.UDM)
		n.lax = true // they are for any Ethernet address
		whole := n.synFrame(9, netip.AddrPortFrom(n.addr(9), 4000), packet.TCPSyn)
		n.host(9)
		for i := range whole {
			n.send(9, whole[:i])
			bad := append([]byte(nil), whole...)
			bad[i] ^= 0xff
			n.send(9, bad)
		}
		if status, body, err := n.do(2, "GET", discoverUDM, ""); status != 200 {
			t.Errorf("afterwards: %d %s %v", status, body, err)
		}
	}
}

// TestWireNeighbours: the front answers for its own address, by ARP and neighbour
// discovery, and takes nobody else for itself.
func TestWireNeighbours(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		n := newNetwork(t, v6)
		ask := func(sender netip.Addr, from flow.MAC) []byte {
			if v6 {
				return packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: from, SrcIP: sender, Target: n.wire.own})
			}
			return packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: from, SenderIP: sender, TargetIP: n.wire.own})
		}
		in, d := wefttest.NewPacketIn(1, 1, ask(n.addr(1), macOf(1))), &flow.Decision{}
		if v := n.proxy.packet(in, d); v != flow.Done || len(d.Outs) != 1 {
			t.Fatalf("a question for the front's address: %v, %d answers", v, len(d.Outs))
		}
		if a, ok := packet.ParseARP(d.Outs[0].Data); !v6 && (!ok || a.SenderMAC() != n.wire.mac || a.SenderIP() != n.wire.own || a.TargetMAC() != macOf(1)) {
			t.Errorf("answer %x", d.Outs[0].Data)
		}
		if a, ok := packet.ParseND(d.Outs[0].Data); v6 && (!ok || a.Target() != n.wire.own || !a.Solicited()) {
			t.Errorf("answer %x", d.Outs[0].Data)
		}
		for what, frame := range map[string][]byte{
			"by its Ethernet address": packet.AppendTCP(nil, packet.Ether{Src: n.wire.mac, Dst: macOf(1)}, packet.IP{Src: n.addr(9), Dst: n.addr(1)}, packet.TCPFields{SrcPort: 1, DstPort: 7777, Flags: packet.TCPSyn}, nil),
			"by its address":          packet.AppendTCP(nil, packet.Ether{Src: macOf(9), Dst: macOf(1)}, packet.IP{Src: n.wire.own, Dst: n.addr(1)}, packet.TCPFields{SrcPort: 1, DstPort: 7777, Flags: packet.TCPSyn}, nil),
		} {
			if v := n.send(9, frame); v != flow.Drop {
				t.Errorf("feigned %s: %v", what, v)
			}
		}
		if v := n.send(9, packet.AppendTCP(nil, packet.Ether{Src: macOf(9), Dst: macOf(1)}, packet.IP{Src: n.addr(9), Dst: n.addr(1)}, packet.TCPFields{SrcPort: 1, DstPort: 80, Flags: packet.TCPSyn}, nil)); v != flow.Next {
			t.Errorf("another port of the NRF's host: %v", v)
		}
	}
}

// TestWireEntries: what leads to the controller stands at edge ports, for as long as
// the front serves.
func TestWireEntries(t *testing.T) {
	n := newNetwork(t, false)
	w := n.wire
	for sw, s := range map[flow.DPID]*api.Switch{1: {Openflow: "1.3", Tables: 254}, 2: {Openflow: "1.0", Tables: 254}} {
		s.Dpid, s.Connected = sw.String(), true
		n.feed(&api.SwitchChanged{Switch: s})
		for port, role := range []string{"", "edge", "link"} {
			n.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw.String(), Port: uint32(port)}, Role: role}})
		}
		flows := w.want(s).GetFlows()
		own := len(flows) - 2 // by which what claims its address comes, too
		if own != map[flow.DPID]int{1: 5}[sw] {
			t.Fatalf("switch %v: %v", sw, flows)
		}
		if sw == 1 {
			_, rest, err := flows[2].Entry()
			if flows = slices.Delete(flows, 2, 3); err != nil || rest.Table != flow.TableProxy || rest.Goto != flow.TableForward || rest.Priority != flow.PriorityProxyRest {
				t.Errorf("what else is for the NRF: %+v, %v", rest, err)
			}
		}
		for _, f := range flows[2:] {
			if _, e, err := f.Entry(); err != nil || e.Table != flow.TableNeighbours || e.Priority != flow.PriorityNeighbourNRF || e.Cookie.Owner() != flow.OwnerSCP {
				t.Errorf("switch %v: %+v, %v", sw, e, err)
			}
		}
		for _, f := range flows[:2] {
			_, e, err := f.Entry()
			if err != nil || e.Match.Key.InPort != 1 || e.Cookie.Owner() != flow.OwnerSCP || e.Goto != 0 || !e.Reserved() && sw == 1 || (e.Table == 0) != (sw == 2) {
				t.Errorf("switch %v: %+v, %v", sw, e, err)
			}
		}
	}
	n.stop()
	n.stop = func() {}
	if req := w.want(&api.Switch{Dpid: flow.DPID(1).String()}); req != nil {
		t.Errorf("after its end: %v", req)
	}
}

// TestFrontPending: the front is said to intercept once every switch with edge ports
// has confirmed the entries that lead to it.
func TestFrontPending(t *testing.T) {
	n := newNetwork(t, false)
	w := n.wire
	var due flow.DPID
	w.due = func(sw flow.DPID) bool { return sw == due }
	n.eventually("the front serves", func() bool { return n.proxy.get(&api.GetScpRequest{}, nil, now()).Front != "passing" })
	is := func(when, want string) {
		t.Helper()
		if got := n.proxy.get(&api.GetScpRequest{}, nil, now()).Front; got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	is("without a port of consumers", "pending")
	info := map[flow.DPID]*api.Switch{}
	for sw := flow.DPID(1); sw <= 2; sw++ {
		info[sw] = &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3", Tables: 254}
		n.feed(&api.SwitchChanged{Switch: info[sw]})
		n.feed(&api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw.String(), Port: 1}, Role: "edge"}})
	}
	declare := func(sw flow.DPID, failed ...*api.WantedFlow) {
		w.want(info[sw])
		w.answered(sw, nil, failed)
		w.renewGates(t.Context(), time.Now().UnixNano())
	}
	due = 2
	declare(1)
	is("one switch has not been asked", "pending")
	due = 0
	w.want(info[2])
	is("it has not answered", "pending")
	w.answered(2, nil, []*api.WantedFlow{{}})
	is("it refuses an entry", "pending")
	declare(2)
	is("both have all", "intercepting")
	due = 1
	is("entries are declared again", "intercepting")
	declare(1, &api.WantedFlow{})
	is("the first refuses one", "pending")
	n.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: info[1].Dpid}})
	is("the first is gone", "intercepting")
}

// TestFrontPendingInHost: likewise of a front in a host.
func TestFrontPendingInHost(t *testing.T) {
	g := newRig(t)
	state := func() *api.GetScpResponse {
		vips, _ := g.back.list(t.Context())
		return g.proxy.get(&api.GetScpRequest{}, vips, g.now.Load())
	}
	front := func() string { return state().Front }
	g.eventually("the balancer has put the VIP in force", func() bool { return front() == "intercepting" })
	g.proxy.refuse(nrfVip, api.Errorf(codes.FailedPrecondition, "no room"))
	if got := front(); got != "pending" {
		t.Errorf("the balancer refuses it: %s", got)
	}
	g.stop()
	g.stop = func() {}
	if got := front(); got != "passing" {
		t.Errorf("the front has ended: %s", got)
	}
	setSilent(g.proxy, errors.New("there is no network namespace weft-5gc.scp"))
	if got := state().FrontReason; got != "there is no network namespace weft-5gc.scp" {
		t.Errorf("the front cannot listen: %q", got)
	}
}

// TestOwnAddress: a front without a host has the last address of scp.vips, unless
// another is given.
func TestOwnAddress(t *testing.T) {
	for _, c := range []struct{ nrf, listen, vips, address, want, err string }{
		{"http://10.0.0.1:7777", "", "10.0.9.0/24,fd00::/112", "", "10.0.9.254", ""},
		{"http://[fd00::1]:7777", "", "10.0.9.0/24,fd00::/112", "", "fd00::fffe", ""},
		{"http://10.0.0.1:7777", "", "10.0.8.0/21", "", "10.0.15.254", ""},
		{"http://10.0.0.1:7777", "", "10.0.9.0/31", "", "10.0.9.0", ""},
		{"http://10.0.9.254:7777", "", "10.0.9.0/24", "", "10.0.9.253", ""},
		{"http://10.0.0.1:7777", "", "", "10.0.0.9", "10.0.0.9", ""},
		{"http://10.0.0.1:7777", "10.0.0.2:7777", "10.0.9.0/24", "", "", ""},
		{"", "", "10.0.9.0/24", "", "", ""},
		{"http://10.0.0.1:7777", "", "fd00::/112", "", "", "set scp.address"},
		{"http://10.0.0.1:7777", "", "", "", "", "set scp.address"},
		{"http://10.0.0.1:7777", "10.0.0.2:7777", "", "10.0.0.9", "", "leave out scp.address"},
		{"http://10.0.0.1:7777", "", "", "10.0.0.1", "", "NRF's own"},
		{"http://10.0.0.1:7777", "", "", "fd00::9", "", "of the family"},
		{"http://10.0.0.1:7777", "", "", "224.0.0.1", "", "of a single host"},
		{"", "", "", "10.0.0.9", "", "say by nrf"},
		{"http://10.0.0.1:7777", "", "", "10.0.0.9:80", "", "of a single host"},
		{"https://10.0.0.1:7777", "", "10.0.9.0/24", "", "", "scp.certificate"},
	} {
		cfg := DefaultConfig()
		cfg.NRF, cfg.Listen, cfg.Address = c.nrf, c.listen, c.address
		for _, text := range strings.FieldsFunc(c.vips, func(r rune) bool { return r == ',' }) {
			cfg.Vips = append(cfg.Vips, netip.MustParsePrefix(text))
		}
		err := cfg.Validate()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if got := cfg.own(); err != nil || got.IsValid() != (c.want != "") || got.IsValid() && got.String() != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// FuzzWire: no frame ends the front.
func FuzzWire(f *testing.F) {
	n := newNetwork(f, false)
	n.lax = true
	n.host(9)
	f.Add(n.synFrame(9, netip.AddrPortFrom(n.addr(9), 4000), packet.TCPSyn))
	f.Add(n.synFrame(9, netip.AddrPortFrom(n.addr(9), 4000), packet.TCPAck))
	f.Add(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: macOf(9), SenderIP: n.addr(9), TargetIP: n.wire.own}))
	f.Fuzz(func(_ *testing.T, frame []byte) {
		in := wefttest.NewPacketIn(1, 9, frame)
		in.Time = time.Now().UnixNano()
		n.proxy.packet(in, &flow.Decision{})
	})
}

// A front without a host passes requests on to producers from its own address, and
// to a consumer that is one, too.
func TestWireRelay(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		n := newNetwork(t, v6, func(cfg *Config) { cfg.NRFTimeout = time.Minute })
		n.mu.Lock()
		n.hosts[5] = &netHost{n: 5, addr: n.addr(5)}
		n.mu.Unlock()
		at := n.addr(205) // its stack accepts what is for others
		s, err := newNetstack(at, admitAll, silent{})
		if err != nil {
			t.Fatal(err)
		}
		n.run(n.hosts[5], s)
		n.learn(5, n.addr(5), at)
		n.register(5, sbi.UDM)
		web := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.URL.Path, " for ", r.RemoteAddr)
		})}
		web.Protocols.SetUnencryptedHTTP2(true)
		l := s.listen(10)
		go func() { _ = web.Serve(l) }()
		defer web.Close()
		for _, from := range []int{2, 5} {
			c := n.host(from).web(n.wire.nrf)
			status, body, err := ask(c, "GET", n.cfg.NRF+"/nudm-main/v1/x", "", "3gpp-Sbi-Discovery-target-nf-type", "UDM", "User-Agent", "AMF-amf1")
			c.CloseIdleConnections()
			if want := "/nudm-main/v1/x for " + netip.AddrPortFrom(n.wire.own, 0).String(); status != 200 || !strings.HasPrefix(body, strings.TrimSuffix(want, "0")) {
				t.Errorf("from %d: %d %s %v", from, status, body, err)
			}
		}
		uri := n.front.notifier.seal(callback{URI: "http://" + netip.AddrPortFrom(n.addr(5), 80).String() + "/callback"})
		n.register(4, sbi.SCP)
		for _, from := range []int{1, 4} { // the NRF, and an SCP that passes its notifications on
			c := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return n.host(from).stack.dialFrom(ctx, n.addr(from), n.cfg.self())
			}}
			c.Protocols.SetUnencryptedHTTP2(true)
			if status, body, err := ask(c, "POST", uri, "{}"); status != 200 {
				t.Errorf("a notification from %d: %d %s %v", from, status, body, err)
			}
			c.CloseIdleConnections()
		}
		if n.wire.stack.calls(n.addr(2)) {
			t.Error("others than the NRF and SCPs may connect to the front's own address")
		}
		if n.counts["unknown_receiver"].sum()+n.counts["spoofed"].sum() != 0 {
			t.Error("frames of the front were dropped")
		}
	}
}

// Connections that the NRF has when the front begins go on with it, until they are
// idle: then both ends are reset. What is no segment of an established connection does
// not get there.
func TestWireOlder(t *testing.T) {
	n := newNetwork(t, false)
	client := netip.AddrPortFrom(n.addr(2), 40000)
	n.mu.Lock()
	n.hosts[2] = &netHost{n: 2, addr: n.addr(2)} // it takes no answers
	n.mu.Unlock()
	send := func(flags uint8, now int64) (flow.Verdict, map[flow.Port]packet.TCP) {
		in, d := wefttest.NewPacketIn(1, 2, packet.AppendTCP(nil, packet.Ether{Src: macOf(2), Dst: macOf(1)}, packet.IP{Src: client.Addr(), Dst: n.addr(1)},
			packet.TCPFields{SrcPort: client.Port(), DstPort: 7777, Seq: 100, Ack: 200, Flags: flags}, nil)), &flow.Decision{}
		in.Time = now
		v := n.proxy.packet(in, d)
		return v, segmentsOf(d)
	}
	now := time.Now().UnixNano()
	for _, flags := range []uint8{0, 0xff, packet.TCPSyn, packet.TCPRst, packet.TCPRst | packet.TCPUrg} {
		if v, _ := send(flags, now); v != flow.Done {
			t.Errorf("flags %x: %v", flags, v)
		}
	}
	client = netip.AddrPortFrom(n.addr(2), 40001) // that SYN has made one
	if v, out := send(packet.TCPAck|packet.TCPPsh, now); v != flow.Next || len(out) != 0 {
		t.Errorf("of an older one: %v", v)
	}
	if d := n.wire.askOlder(now + olderIdle/2); !d.Empty() {
		t.Error("asked although it is busy")
	}
	later := now + olderIdle
	if out := segmentsOf(n.wire.askOlder(later)); len(out) != 1 || out[2].Flags() != packet.TCPAck || out[2].DstPort() != client.Port() {
		t.Errorf("an idle one is asked: %v", out)
	}
	if v, out := send(packet.TCPAck, later+1); v != flow.Done || len(out) != 2 || out[2].Flags() != packet.TCPRst || out[2].Seq() != 200 || out[1].Flags() != packet.TCPRst || out[1].Seq() != 100 {
		t.Errorf("its answer: %v, %v", v, out)
	}
	if v, _ := send(packet.TCPAck, now+olderTime+int64(time.Minute)); v != flow.Done {
		t.Errorf("long after: %v", v)
	}
}

// segmentsOf returns the segments of packet-outs, by port.
func segmentsOf(d *flow.Decision) map[flow.Port]packet.TCP {
	all := map[flow.Port]packet.TCP{}
	for _, o := range d.Outs {
		if t, ok := packet.ParseTCP(o.Data); ok {
			all[flow.Port(o.Actions[len(o.Actions)-1].Arg)] = t
		}
	}
	return all
}
