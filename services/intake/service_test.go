package intake

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

const v13 = openflow.V13

// frame is a packet from a host.
func frame(n byte) []byte {
	return packet.AppendUDP(nil, packet.Ether{Src: flow.MAC{2, 0, 0, 0, 0, n}, Dst: flow.MAC{2, 0, 0, 0, 0, 99}},
		packet.IP{Src: netip.AddrFrom4([4]byte{10, 0, 0, n}), Dst: netip.AddrFrom4([4]byte{10, 0, 0, 99})}, 1, 2, []byte("x"))
}

// master is the southbound of a device, as far as the test needs one: it is its
// master, writes entries, and counts the packet-ins that come to it.
type master struct {
	send func([]byte)
	mu   sync.Mutex // guards ins
	ins  int
}

func attach(t *testing.T, d *oftest.Device) *master {
	m := &master{}
	send, detach := d.Attach(func(msg []byte) {
		if h, _ := openflow.ParseHeader(msg); h.Type == openflow.TypePacketIn {
			m.mu.Lock()
			m.ins++
			m.mu.Unlock()
		}
	})
	t.Cleanup(detach)
	m.send = send
	send(v13.AppendHello(nil, 1, v13))
	role, err := v13.AppendRoleRequest(nil, 2, openflow.RoleMaster, 77)
	if err != nil {
		t.Fatal(err)
	}
	send(role)
	return m
}

func (m *master) add(t *testing.T, e flow.Entry) {
	t.Helper()
	msg, err := v13.AppendFlowMod(nil, 3, &flow.Mod{Entry: e, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny})
	if err != nil {
		t.Fatal(err)
	}
	m.send(msg)
}

func (m *master) packetIns() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ins
}

// peers records what the service asks of others.
type peers struct {
	mu      sync.Mutex // guards what follows
	asked   []*api.DirectPacketsRequest
	outs    []byte // last octets of the addresses of packets sent, in order
	absent  bool   // the southbound is away
	address string
	seen    []flow.PacketIn
	guards  [][]flow.OpKind // kinds of operations of decisions with meters
	guard   string          // what their entries do
}

func (p *peers) eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(2 * time.Millisecond) {
		p.mu.Lock()
		done := so()
		p.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it is not so within 10 s that %s", what)
		}
	}
}

func (p *peers) last() *api.DirectPacketsRequest {
	for i := len(p.asked) - 1; i >= 0; i-- {
		if !p.asked[i].Same {
			return p.asked[i]
		}
	}
	return &api.DirectPacketsRequest{}
}

func newPeers(t *testing.T, h *wefttest.Harness, config ...string) *peers {
	p := &peers{}
	wefttest.Fake(h, api.DirectPackets, func(_ context.Context, req *api.DirectPacketsRequest) (*api.DirectPacketsResponse, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = append(p.asked, req)
		return &api.DirectPacketsResponse{}, nil
	})
	wefttest.Fake(h, api.Send, func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.absent {
			return nil, api.Errorf(codes.Unavailable, "the southbound is away")
		}
		if len(d.Meters) > 0 && len(d.Flows) > 0 {
			var kinds []flow.OpKind
			for _, op := range d.Ops {
				kinds = append(kinds, op.Kind)
			}
			p.guards, p.guard = append(p.guards, kinds), flow.FormatActions(d.Flows[0].Entry.Apply)
		}
		for _, o := range d.Outs {
			p.outs = append(p.outs, o.Data[11])
		}
		return &api.ApplyResult{}, nil
	})
	h.Stage(func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
		p.mu.Lock()
		defer p.mu.Unlock()
		seen := *in
		seen.Data = nil
		p.seen = append(p.seen, seen)
		d.PacketOut(in.Switch, flow.PacketOut{BufferID: flow.BufferNone, InPort: in.Key.InPort, Actions: d.Output(2), Data: in.Data})
		return flow.Done
	})
	dir, err := os.MkdirTemp("", "in") // a socket's path has 107 octets at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p.address = filepath.Join(dir, "s")
	h.Configure("listen: [\"unix:" + p.address + "\"]\nnumber: 9\nlease: 300ms\n" + strings.Join(config, "\n"))
	h.Start()
	return p
}

// dial has a switch connect to the intake.
func (p *peers) dial(t *testing.T, d *oftest.Device) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { _ = d.Dial(ctx, "unix", p.address) }()
}

func role(sw flow.DPID, port flow.Port, role string) *api.PortRoleChanged {
	return &api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(flow.Location{Switch: sw, Port: port}), Role: role}}
}

// TestTakes: packets come over the connection with the number, with the role of
// their port, and what is decided of them goes to the southbound in their order;
// discovery hears of the first of a port, and gets no other.
func TestTakes(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(t, h)
		d := oftest.NewDevice(oftest.Config{DPID: 1, Nicira: true}, nil)
		m := attach(t, d)
		m.add(t, flow.Entry{Apply: []flow.Action{flow.ToController(9, flow.ReasonNoMatch)}})
		m.add(t, flow.Entry{Priority: 9, Match: flow.Match{}.WithEthType(flow.EthTypeLLDP), Apply: []flow.Action{flow.ToController(9, flow.ReasonAction)}})
		m.add(t, flow.Entry{Priority: 9, Match: flow.Match{}.WithInPort(4), Apply: []flow.Action{flow.ToController(0, flow.ReasonAction)}})
		wefttest.Publish(h, api.PortRoleChangedEvent, role(1, 1, "edge"))
		wefttest.Publish(h, api.PortRoleChangedEvent, role(1, 2, "link"))
		p.dial(t, d)
		p.eventually(t, "the packets of the switch are asked for", func() bool { return slices.Equal(p.last().Dpids, []string{"0000000000000001"}) })
		if r := p.last(); r.Controller != 9 || r.Milliseconds != 300 || r.Run == 0 {
			t.Errorf("asked %v", r)
		}
		d.Do(func(s *oftest.Switch) oftest.Effects {
			if s.Role(1) != openflow.RoleMaster || s.Role(2) != openflow.RoleSlave {
				t.Errorf("the southbound is %v, the intake %v", s.Role(1), s.Role(2))
			}
			return oftest.Effects{}
		})
		const packets = 50
		for n := range byte(packets) {
			d.Receive(1, frame(n))
		}
		p.eventually(t, "all decisions have been sent", func() bool { return len(p.outs) >= packets })
		for n, b := range p.outs {
			if int(b) != n {
				t.Fatalf("decisions in the order %v", p.outs)
			}
		}
		if e := wefttest.Next(h, api.PortUsedEvent); e.Dpid != "0000000000000001" || e.Port != 1 {
			t.Errorf("%v", e)
		}
		for port := range flow.Port(4) {
			d.Receive(port+1, frame(200))
		}
		lldp := append([]byte{1, 0x80, 0xc2, 0, 0, 0xe, 2, 0, 0, 0, 0, 1, 0x88, 0xcc}, make([]byte, 46)...)
		d.Receive(1, lldp)
		p.eventually(t, "packets of other ports are seen", func() bool { return len(p.seen) >= packets+3 })
		p.mu.Lock()
		for i, want := range []flow.PortRole{flow.RoleEdge, flow.RoleLink, flow.RoleUnsettled} {
			if got := p.seen[packets+i]; got.Role != want || got.Key.InPort != flow.Port(i+1) || got.Reason != flow.ReasonNoMatch {
				t.Errorf("port %d has the role %v, reason %d; want %v", got.Key.InPort, got.Role, got.Reason, want)
			}
		}
		p.mu.Unlock()
		wefttest.Publish(h, api.PortRoleChangedEvent, role(1, 2, "edge"))
		d.Receive(2, frame(201))
		if e := wefttest.Next(h, api.PortUsedEvent); e.Port != 2 {
			t.Errorf("%v", e)
		}
		wefttest.None(h, api.PortUsedEvent, 20*time.Millisecond)
		if n := m.packetIns(); n != 1 {
			t.Errorf("%d packet-ins to the southbound, want that of port 4", n)
		}
		if n := h.Metric("unwanted_total", "what", "probe"); n != 1 {
			t.Errorf("%v probes counted", n)
		}
		p.eventually(t, "it is asked for again and again", func() bool {
			same := 0
			for _, r := range p.asked {
				if r.Same {
					same++
				}
			}
			return same >= 3
		})
		d.Disconnect()
		p.eventually(t, "nothing is asked for when the switch has gone", func() bool { return len(p.last().Dpids) == 0 })
	})
}

// TestGivesBack: an intake that ends says so first.
func TestGivesBack(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(t, h)
		p.dial(t, oftest.NewDevice(oftest.Config{DPID: 1, Nicira: true}, nil))
		p.eventually(t, "packets are asked for", func() bool { return len(p.last().Dpids) == 1 })
		h.Stop()
		if r := p.last(); len(r.Dpids) != 0 || r.Revision == 0 {
			t.Errorf("the last that was asked is %v", r)
		}
	})
}

// TestWithoutNumbers: a switch that knows no numbers of controllers stays with
// the southbound.
func TestWithoutNumbers(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(t, h)
		d := oftest.NewDevice(oftest.Config{DPID: 1}, nil)
		m := attach(t, d)
		m.add(t, flow.Entry{Apply: []flow.Action{flow.ToController(0, flow.ReasonNoMatch)}})
		p.dial(t, d)
		p.dial(t, oftest.NewDevice(oftest.Config{DPID: 2, Nicira: true, Versions: []openflow.Version{openflow.V10}}, nil))
		p.dial(t, oftest.NewDevice(oftest.Config{DPID: 3, Nicira: true}, nil))
		p.eventually(t, "the other is asked for", func() bool { return len(p.last().Dpids) > 0 })
		p.eventually(t, "both connections are there", func() bool { return h.Metric("switches") == 2 })
		d.Receive(1, frame(1))
		p.mu.Lock()
		defer p.mu.Unlock()
		if list := p.last().Dpids; !slices.Equal(list, []string{"0000000000000003"}) {
			t.Errorf("asked for %v", list)
		}
		if m.packetIns() != 1 || len(p.seen) != 0 {
			t.Errorf("%d packets to the southbound, %d to the intake", m.packetIns(), len(p.seen))
		}
	})
}

// TestSouthboundAway: what cannot be carried is counted, and the rest goes on.
func TestSouthboundAway(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(t, h)
		d := oftest.NewDevice(oftest.Config{DPID: 1, Nicira: true}, nil)
		attach(t, d).add(t, flow.Entry{Apply: []flow.Action{flow.ToController(9, flow.ReasonNoMatch)}})
		p.dial(t, d)
		p.eventually(t, "packets are asked for", func() bool { return len(p.last().Dpids) == 1 })
		p.mu.Lock()
		p.absent = true
		p.mu.Unlock()
		d.Receive(1, frame(1))
		p.eventually(t, "it is counted", func() bool { return h.Metric("decisions_shed_total", "reason", "away") == 1 })
		p.mu.Lock()
		p.absent = false
		p.mu.Unlock()
		d.Receive(1, frame(2))
		p.eventually(t, "the next is sent", func() bool { return slices.Equal(p.outs, []byte{2}) })
	})
}

// TestGuards: a port that floods is limited on arrival, and by a meter that the
// southbound writes; what passes it comes here.
func TestGuards(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		p := newPeers(t, h, "flood_rate: 100", "flood_floor: 100")
		d := oftest.NewDevice(oftest.Config{DPID: 1, Nicira: true}, nil)
		m := attach(t, d)
		m.add(t, flow.Entry{Goto: flow.TableForward})
		m.add(t, flow.Entry{Table: flow.TableForward, Apply: []flow.Action{flow.ToController(9, flow.ReasonNoMatch)}})
		p.dial(t, d)
		p.eventually(t, "packets are asked for", func() bool { return len(p.last().Dpids) == 1 })
		for guarded := false; !guarded; time.Sleep(time.Millisecond) {
			d.Receive(2, frame(2)) // waits for the others
			for range 20 {
				d.Receive(1, frame(1))
			}
			p.mu.Lock()
			guarded = len(p.guards) > 0
			p.mu.Unlock()
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		kinds := p.guards[0]
		first := slices.Index(kinds, flow.OpFlow)
		if first < 2 || kinds[first-1] != flow.OpFence || kinds[first-2] != flow.OpMeter || p.guard != "controller(id=9)" {
			t.Errorf("the guard is %v, and does %s", kinds, p.guard)
		}
		if h.Metric("floods_total") == 0 {
			t.Error("the flood is not counted")
		}
	})
}
