package balancer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
	kit "github.com/weft-sdn/weft/policy"
	"github.com/weft-sdn/weft/wefttest"
)

// silent is a figure that nobody reads.
type silent struct{}

func (silent) Add(float64) {}

// rig is the balancer's logic among hosts h1, h2 … with the addresses 10.0.0.N
// and fd00::N: those up to 4 at switch 1, the others at switch 2.
type rig struct {
	t   testing.TB
	b   *balancer
	now int64

	feed func(events ...any)

	store object.Bucket

	port uint16 // of the last connection of shares
}

func newRig(t testing.TB) *rig {
	bucket, err := wefttest.NewStore().Bucket(context.Background(), "balancer.vips")
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, now: time.Now().UnixNano()}
	g.start(bucket)
	return g
}

// start makes a balancer anew on a store; all switches and hosts are known.
func (g *rig) start(store object.Bucket) {
	g.store = store
	count := newCounts(func(string, string, ...string) Counter { return silent{} })
	g.b = newBalancer(DefaultConfig(), count, slog.New(slog.NewTextHandler(io.Discard, nil)))
	g.b.vips.Open(store)
	if err := g.b.vips.Load(context.Background()); err != nil {
		g.t.Fatal(err)
	}
	g.feed = wefttest.Network(reads, func(c nib.Change) { g.b.networkChanged(c, g.now) })
	for sw := range flow.DPID(2) {
		g.connect(sw+1, 254)
	}
	for n := 1; n <= 8; n++ {
		g.host(n, placeOf(n), "learnt")
	}
}

func (g *rig) connect(sw flow.DPID, tables uint32) {
	g.feed(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3", Tables: tables}})
}

func macOfHost(n int) flow.MAC { return flow.MAC{2, 0, 0, 0, 0, byte(n)} }
func v4(n int) netip.Addr      { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }
func v6(n int) netip.Addr      { return netip.MustParseAddr(fmt.Sprintf("fd00::%d", n)) }

func placeOf(n int) flow.Location {
	return flow.Location{Switch: flow.DPID(1 + (n-1)/4), Port: flow.Port(n)}
}

func (g *rig) host(n int, at flow.Location, change string) {
	g.feed(&api.HostChanged{Change: change, Host: &api.Host{
		Mac: macOfHost(n).String(), At: api.NewLocation(at), Ipv4: []string{v4(n).String()}, Ipv6: []string{v6(n).String()},
	}})
}

// web is a VIP over hosts, at port 80, served at 8080.
func web(policy string, hosts ...int) *api.Vip {
	v := &api.Vip{Name: "web", Address: "10.0.0.100", Protocol: "tcp", Port: 80, Policy: policy, IdleTimeout: 60}
	for _, n := range hosts {
		v.Pool = append(v.Pool, &api.PoolMember{Address: v4(n).String(), Port: 8080})
	}
	return v
}

func (g *rig) set(v *api.Vip) *api.Vip {
	g.t.Helper()
	_, is, err := g.b.vips.Set(context.Background(), v)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.b.status(is)
}

func (g *rig) show(name string) *api.Vip {
	g.t.Helper()
	g.b.mu.Lock()
	v := g.b.vips.Get(name)
	g.b.mu.Unlock()
	if v == nil {
		g.t.Fatalf("there is no VIP %s", name)
	}
	return g.b.status(v)
}

// rules returns what a switch should have whatever the traffic.
func (g *rig) rules(sw flow.DPID) kit.Rules { return g.b.rules(&api.Switch{Dpid: sw.String()}) }

// frame is the first packet of a connection of a host to 10.0.0.100.
func (g *rig) frame(client int, port uint16) []byte {
	mac := flow.MAC{}
	if x := g.b.index.Load(); x != nil && x.fronts[object.In(v4(100), 0)] != nil {
		mac = x.fronts[object.In(v4(100), 0)].mac
	}
	return packet.AppendTCP(nil, packet.Ether{Dst: mac, Src: macOfHost(client)}, packet.IP{Src: v4(client), Dst: v4(100)},
		packet.TCPFields{SrcPort: port, DstPort: 80, Flags: packet.TCPSyn}, nil)
}

// send has a frame come in from a host.
func (g *rig) send(client int, frame []byte) (flow.Verdict, *flow.PacketIn, *flow.Decision) {
	at := placeOf(client)
	in := wefttest.NewPacketIn(at.Switch, at.Port, frame)
	in.Time = g.now
	d := &flow.Decision{}
	return g.b.packet(in, d), in, d
}

// open begins a connection and returns the host that it is given to, 0 if none.
func (g *rig) open(client int, port uint16) int {
	g.t.Helper()
	verdict, in, _ := g.send(client, g.frame(client, port))
	if verdict != flow.Next {
		return 0
	}
	return int(in.Key.IPv4Dst[3])
}

// posted returns what has been posted meanwhile.
func (g *rig) posted() *flow.Decision {
	all := &flow.Decision{}
	for d, ok := g.b.out.next(); ok; d, ok = g.b.out.next() {
		for _, op := range d.Ops {
			if op.Kind == flow.OpFlow {
				all.Flow(op.Switch, d.Flows[op.Index])
			} else {
				all.PacketOut(op.Switch, d.Outs[op.Index])
			}
		}
	}
	return all
}

// mods returns the flow-mods of a decision by switch and command.
func mods(d *flow.Decision, sw flow.DPID, c flow.Command) (list []flow.Entry) {
	for _, op := range d.Ops {
		if op.Kind == flow.OpFlow && op.Switch == sw && d.Flows[op.Index].Command == c {
			list = append(list, d.Flows[op.Index].Entry)
		}
	}
	return list
}

// standIns are fakes of the peers of a service that runs in a harness. It keeps
// what was sent.
type standIns struct {
	mu   sync.Mutex
	sent []*flow.Decision
	sets map[string]*api.SetStandingRequest
	asks int
}

func fakes(h *wefttest.Harness) *standIns {
	s := &standIns{sets: map[string]*api.SetStandingRequest{}}
	for _, m := range []api.Method[flow.Decision, api.ApplyResult]{api.Send, api.Apply} {
		wefttest.Fake(h, m, func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sent = append(s.sent, d)
			return &api.ApplyResult{}, nil
		})
	}
	wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sets[r.Dpid] = r
		return &api.SetStandingResponse{}, nil
	})
	wefttest.Fake(h, api.Observe, func(context.Context, *api.ObserveRequest) (*api.ObserveResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asks++
		return &api.ObserveResponse{}, nil
	})
	return s
}
