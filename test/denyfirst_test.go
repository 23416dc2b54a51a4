package test

import (
	"bytes"
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// pair is a switch with two hosts that are the test's, at ports 1 and 2, the
// second of which is told apart what reaches it.
type pair struct {
	*oftest.Device
	denied, allowed atomic.Int64 // frames that have reached the second host
	end             context.CancelFunc
}

// hostOf returns the addresses of the host at a port.
func hostOf(port byte) (flow.MAC, netip.Addr) {
	return flow.MAC{2, 0, 0, 0, 9, port}, netip.AddrFrom4([4]byte{10, 0, 0, port})
}

// toSecond returns a frame of TCP from the first host to the second.
func toSecond(port uint16) []byte {
	mac1, ip1 := hostOf(1)
	mac2, ip2 := hostOf(2)
	return packet.AppendTCP(nil, packet.Ether{Dst: mac2, Src: mac1}, packet.IP{Src: ip1, Dst: ip2}, packet.TCPFields{SrcPort: 40000, DstPort: port}, nil)
}

// boot connects a switch that has lost everything.
func boot(t *testing.T, c *controller) *pair {
	p := &pair{}
	denied, allowed := toSecond(80), toSecond(81)
	p.Device = oftest.NewDevice(oftest.Config{DPID: 1, Ports: 2}, func(f oftest.Frame) {
		switch {
		case f.Port == 2 && bytes.Equal(f.Data, denied):
			p.denied.Add(1)
		case f.Port == 2 && bytes.Equal(f.Data, allowed):
			p.allowed.Add(1)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	p.end = cancel
	t.Cleanup(cancel)
	go func() {
		for ctx.Err() == nil {
			_ = p.Dial(ctx, "tcp", c.address) // again, as switches do
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return p
}

// introduce has both hosts say who they are.
func (p *pair) introduce() {
	for port := byte(1); port <= 2; port++ {
		mac, ip := hostOf(port)
		_, other := hostOf(3 - port)
		p.Receive(flow.Port(port), packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: mac, SenderIP: ip, TargetIP: other}))
	}
}

// TestCVE_2018_12691_DenyBeforeFirstPacket: a switch that starts with nothing,
// while hosts send as fast as they can, passes what is allowed between two hosts
// soon, and of what is denied between the same not a single packet: neither
// before the rules are on it, nor while they and the routes come, nor when the
// controller starts anew with it.
func TestCVE_2018_12691_DenyBeforeFirstPacket(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"2000", "0"} { // rules in the switch; verdicts
		t.Run("limit "+limit, func(t *testing.T) {
			t.Parallel()
			o := options{set: []string{"firewall.table_limit=" + limit, "southbound.flood_rate=0"}}
			c := start(t, o)
			addRules(c, &api.FirewallRule{Id: "web", Priority: 100, Action: "deny", Match: map[string]string{"tcp_dst": "80"}})
			p := boot(t, c)
			for round := range 6 {
				for begun := time.Now(); p.allowed.Load() < 50; {
					if time.Since(begun) > testwait.Limit {
						t.Fatalf("round %d: what is allowed does not pass", round)
					}
					p.introduce()
					for range 50 {
						p.Receive(1, toSecond(80))
						p.Receive(1, toSecond(81))
					}
					time.Sleep(time.Millisecond)
				}
				for range 500 {
					p.Receive(1, toSecond(80))
				}
				if n := p.denied.Load(); n > 0 {
					t.Fatalf("round %d: %d packets that are denied have passed", round, n)
				}
				p.end()
				p.Disconnect()
				if round == 3 { // the controller with it
					c.stop()
					c = start(t, options{store: c.store, address: c.address, set: o.set})
				}
				p = boot(t, c)
			}
			p.end()
			c.stop()
			if n := p.denied.Load(); n > 0 {
				t.Fatalf("%d packets that are denied have passed", n)
			}
		})
	}
}
