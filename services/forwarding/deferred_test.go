package forwarding

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// farPaths is an engine whose paths are known in another process, which answers
// once it is let.
type farPaths struct {
	*engine
	answer chan struct{}

	mu   sync.Mutex // guards sent
	sent []*flow.Decision
}

func newFarPaths(t testing.TB) (f *farPaths, a, b host) {
	net, a, b := line(t, 3)
	f = &farPaths{engine: testEngine(t, net, nil, a.at, b.at), answer: make(chan struct{})}
	f.findNow = func(*api.FindPathRequest) (*api.FindPathResponse, error) {
		return nil, api.Errorf(codes.Unavailable, "it is not served here")
	}
	f.deferral.find = func(req *api.FindPathRequest) (*api.FindPathResponse, error) {
		<-f.answer
		return net.findPath(req)
	}
	f.deferral.send = func(d *flow.Decision) (*api.ApplyResult, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sent = append(f.sent, d)
		return &api.ApplyResult{}, nil
	}
	return f, a, b
}

// numbered returns a frame of a pair with a number in its payload.
func numbered(from, to host, n int) []byte {
	return packet.Pad(fmt.Appendf(packet.AppendEthernet(nil, packet.Ether{Src: from.mac, Dst: to.mac}, 0x88b5), "%05d", n))
}

// TestPathElsewhere: while the path of a pair is waited for, the stage goes on
// with others; the packets of the pair are released in their order, behind its
// entries.
func TestPathElsewhere(t *testing.T) {
	f, a, b := newFarPaths(t)
	const packets = 100
	for n := range packets {
		_, d, v := punt(f.engine, a, &b, numbered(a, b, n))
		if v != flow.Done || !d.Empty() {
			t.Fatalf("packet %d: %v, %d operations before its path is known", n, v, len(d.Ops))
		}
	}
	if _, d, _ := punt(f.engine, a, &b, packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: a.mac, SenderIP: a.ip, TargetIP: b.ip})); len(d.Outs) != 1 {
		t.Errorf("ARP is not answered: %d packet-outs", len(d.Outs))
	}
	close(f.answer)
	f.deferral.drain(func() { t.Error("packets still wait") })
	n := 0
	for _, d := range f.sent {
		for _, op := range d.Ops {
			if op.Kind != flow.OpPacketOut {
				continue
			}
			if want := numbered(a, b, n); string(d.Outs[op.Index].Data) != string(want) {
				t.Fatalf("packet-out %d is of another packet", n)
			}
			n++
		}
	}
	if n != packets || f.routes.size() != 2 || len(f.sent[0].Flows) == 0 || f.sent[0].Ops[0].Kind != flow.OpFlow {
		t.Errorf("%d packets released of %d, %d routes", n, packets, f.routes.size())
	}
	if len(f.deferral.pairs) != 0 || f.deferral.packets.Load() != 0 || f.deferral.octets != 0 {
		t.Errorf("left behind: %d pairs, %d packets, %d octets", len(f.deferral.pairs), f.deferral.packets.Load(), f.deferral.octets)
	}
}

// TestPathElsewhereWatched: a packet that somebody watches says that it is kept, and
// has a decision by itself with its trace, between those of the others, even if there
// is nothing to do about it.
func TestPathElsewhereWatched(t *testing.T) {
	f, a, b := newFarPaths(t)
	var in *flow.PacketIn
	for n := range 5 {
		in = packetIn(a, &b, numbered(a, b, n), time.Now().UnixNano())
		if n == 4 {
			in.Time -= 2 * int64(deferredFor) // too late
		}
		if n >= 2 {
			in.Trace = uint64(n)
		}
		d := &flow.Decision{}
		if f.open(a.at.Switch)(in, d); !d.Kept {
			t.Errorf("packet %d: nobody says that it is kept", n)
		}
	}
	close(f.answer)
	f.deferral.drain(func() { t.Error("packets still wait") })
	got := map[uint64]int{} // packet-outs
	for _, d := range f.sent {
		got[d.Trace] += len(d.Outs)
	}
	if want := map[uint64]int{0: 2, 2: 1, 3: 1, 4: 0}; !maps.Equal(got, want) {
		t.Errorf("packet-outs by trace %v, want %v", got, want)
	}
}

// TestPathTooLate: what finds no room, or has waited for too long, is counted.
func TestPathTooLate(t *testing.T) {
	f, a, b := newFarPaths(t)
	punt(f.engine, a, &b, numbered(a, b, 0)) // which is waited for
	old := time.Now().Add(-2 * deferredFor).UnixNano()
	const late = 5
	for n := range late {
		f.open(a.at.Switch)(packetIn(a, &b, numbered(a, b, n), old), &flow.Decision{})
	}
	for n := range deferredOctets/1500 + 10 {
		punt(f.engine, a, &b, append(numbered(a, b, n), make([]byte, 1500)...))
	}
	full := f.count.pathFull.Load()
	if full == 0 || f.deferral.octets > deferredOctets {
		t.Errorf("%d refused, %d octets wait", full, f.deferral.octets)
	}
	if l := f.reached.List(0); len(l) != 1 || l[0].Times != full {
		t.Errorf("limits reached: %v", l)
	}
	close(f.answer)
	f.deferral.drain(func() {})
	if n := f.count.pathLate.Load(); n != late {
		t.Errorf("%d too late, want %d", n, late)
	}
	f.routes = newRouteTable()
	if punt(f.engine, a, &b, numbered(a, b, 0)); f.count.pathFull.Load() != full+1 {
		t.Error("a packet is taken after the end")
	}
}
