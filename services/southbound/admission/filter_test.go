package admission

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/ratelimit"
	"github.com/weft-sdn/weft/packet"
)

// trial offers an admission packets in virtual time.
type trial struct {
	a        Filter
	now      int64
	offered  map[flow.Port]int
	admitted map[flow.Port]int
	changes  []Change
	frames   [ClassCount][]byte
}

// trialRule is the rule that the southbound has by default.
var trialRule = FloodRule{Rate: 5000, Factor: 4, Floor: 1000, Probes: 1000}

// trialMemory is the memory of one session that is established.
func trialMemory() *Account {
	a := NewMemory(256<<20, 1<<30).NewAccount(time.Now(), nil, nil)
	a.Establish()
	return a
}

func newTrial() *trial {
	t := &trial{a: NewFilter(trialRule, trialMemory()), now: int64(time.Hour), offered: map[flow.Port]int{}, admitted: map[flow.Port]int{}}
	src, dst := flow.MAC{2, 0, 0, 0, 0, 1}, flow.MAC{2, 0, 0, 0, 0, 2}
	ip := packet.IP{Src: addr4(1), Dst: addr4(2)}
	t.frames[ClassProbes] = packet.AppendLLDP(nil, packet.Ether{Dst: packet.LLDPNearestBridge, Src: src}, packet.LLDPFields{
		ChassisSubtype: packet.ChassisLocal, ChassisID: []byte("1"), PortSubtype: packet.PortLocal, PortID: []byte("1"), TTL: 1})
	t.frames[ClassNeighbours] = packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: src, SenderIP: addr4(1), TargetIP: addr4(2)})
	t.frames[classUnicast] = packet.AppendUDP(nil, packet.Ether{Src: src, Dst: dst}, ip, 1, 2, nil)
	t.frames[classMulticast] = packet.AppendUDP(nil, packet.Ether{Src: src, Dst: flow.Broadcast}, ip, 1, 2, nil)
	return t
}

// load is what a port sends.
type load struct {
	port  flow.Port
	rate  float64
	class Class
	macs  int // how many addresses it comes from, one after the other; 0 is all it can make up
}

// run offers loads for a time, interleaved, in steps of a millisecond.
func (t *trial) run(d time.Duration, by Pressure, loads ...load) {
	owed := make([]float64, len(loads))
	var in flow.PacketIn
	for end := t.now + int64(d); t.now < end; t.now += int64(time.Millisecond) {
		if t.a.Due(t.now) {
			t.changes = t.a.Roll(t.now, by, t.changes)
		}
		for more := true; more; {
			more = false
			for i := range loads {
				l := &loads[i]
				if owed[i] < 1 {
					continue
				}
				owed[i]--
				more = true
				frame := t.frames[l.class]
				n := t.offered[l.port]
				if l.macs > 0 {
					n %= l.macs
				}
				from := flow.MACFrom(0x02<<40 | uint64(l.port)<<32 | uint64(n))
				copy(frame[6:], from[:])
				in = flow.PacketIn{Time: t.now, Data: frame, Key: flow.Key{InPort: l.port}}
				packet.ParseEthernet(frame, &in.Key)
				t.offered[l.port]++
				if t.a.Admit(&in) == Admitted {
					t.admitted[l.port]++
				}
			}
		}
		for i := range loads {
			owed[i] += loads[i].rate / 1000
		}
	}
}

func (t *trial) reset() { clear(t.offered); clear(t.admitted) }

// whole checks that nothing of a port was shed.
func (t *trial) whole(tb testing.TB, ports ...flow.Port) {
	tb.Helper()
	for _, p := range ports {
		if t.admitted[p] != t.offered[p] {
			tb.Errorf("port %d: %d of %d admitted, want all", p, t.admitted[p], t.offered[p])
		}
	}
}

// TestGauge: a bucket lets its depth through at once, and its rate from then on.
func TestGauge(t *testing.T) {
	var g ratelimit.Bucket
	now, took := int64(1e15), 0
	for range 1000 {
		if g.Take(now, 1e6, depth) {
			took++
		}
	}
	if took != 500 {
		t.Errorf("%d at once, want 500", took)
	}
	for range 1000 {
		now += 1e5
		if g.Take(now, 1e6, depth) {
			took++
		}
	}
	if took != 600 {
		t.Errorf("%d after a tenth of a second, want 600", took)
	}
}

// TestSharedLoadIsNoFlood: a load that all ports share is never limited, however
// high it is, nor one that many of many ports share; nor what is below the
// threshold.
func TestSharedLoadIsNoFlood(t *testing.T) {
	for _, c := range []struct{ busy, quiet, rate int }{{2, 0, 100_000}, {16, 0, 200_000}, {16, 48, 50_000}, {1, 0, 4000}, {1, 30, 4900}} {
		tr := newTrial()
		var loads []load
		var ports []flow.Port
		for i := range c.busy {
			loads = append(loads, load{flow.Port(i + 1), float64(c.rate) * (0.8 + 0.4*float64(i)/float64(c.busy)), classUnicast, 60})
			ports = append(ports, flow.Port(i+1))
		}
		for i := range c.quiet {
			loads = append(loads, load{flow.Port(1000 + i), 1, ClassNeighbours, 1})
		}
		tr.run(1200*time.Millisecond, Pressure{}, loads...)
		if len(tr.changes) > 0 {
			t.Errorf("%+v: port %d is limited", c, tr.changes[0].Limit.Port)
		}
		tr.whole(t, ports...)
	}
}

// TestFlood: a port that floods is limited to the floor; others, and what else
// comes from that port, are not concerned; and when it is over, so is the limit.
func TestFlood(t *testing.T) {
	tr := newTrial()
	flood := load{1, 100_000, classUnicast, 0}
	others := []load{{2, 200, classUnicast, 50}, {3, 250, ClassNeighbours, 50}, {4, 240, classUnicast, 50}, {5, 40, ClassProbes, 1}}
	tr.run(500*time.Millisecond, Pressure{}, append(others, flood)...)
	if len(tr.changes) != 1 || tr.changes[0].Limit.Port != 1 || tr.changes[0].Ended {
		t.Fatalf("changes %+v, want port 1 limited", tr.changes)
	}
	tr.run(time.Second, Pressure{}, append(others, flood)...)
	tr.reset()
	tr.run(10*time.Second, Pressure{}, append(others, flood)...)
	tr.whole(t, 2, 3, 4, 5)
	if n := tr.admitted[1]; n < 9_000 || n > 11_000 {
		t.Errorf("%d of the flood admitted within 10 s, want about 10000", n)
	}
	if l := tr.a.Limited; len(l) != 1 || l[0].MAC != (flow.MAC{}) || l[0].Class != classUnicast || l[0].Offered < 99_000 {
		t.Errorf("limits %+v", l)
	}
	// What else the port sends has its own allowance.
	for _, c := range []Class{ClassProbes, ClassNeighbours, classMulticast} {
		in := flow.PacketIn{Time: tr.now, Data: tr.frames[c], Key: flow.Key{InPort: 1}}
		packet.ParseEthernet(in.Data, &in.Key)
		if tr.a.Admit(&in) != Admitted {
			t.Errorf("%v of the flooding port are shed", c)
		}
	}
	tr.run(3*time.Second, Pressure{}, append(others, load{1, 100, classUnicast, 10})...)
	if len(tr.changes) != 2 || !tr.changes[1].Ended || len(tr.a.Limited) != 0 || tr.a.senders != nil {
		t.Errorf("the limit is not over: %+v", tr.changes)
	}
}

// TestSeveralFloods: a quarter of the ports may flood together and are found out.
func TestSeveralFloods(t *testing.T) {
	tr := newTrial()
	var loads []load
	var quiet []flow.Port
	for i := range 12 {
		l := load{flow.Port(i + 1), 50, classUnicast, 5}
		if i < 3 {
			l = load{flow.Port(i + 1), 30_000, classUnicast, 0}
		} else {
			quiet = append(quiet, l.port)
		}
		loads = append(loads, l)
	}
	tr.run(2*time.Second, Pressure{}, loads...)
	if len(tr.a.Limited) != 3 {
		t.Errorf("%d ports limited, want the 3 that flood", len(tr.a.Limited))
	}
	tr.whole(t, quiet...)
}

// TestOneAddress: an address that floods leaves half of its port's allowance to
// others on that port, and is named.
func TestOneAddress(t *testing.T) {
	tr := newTrial()
	frame := tr.frames[classUnicast]
	pass := map[bool]int{}
	var in flow.PacketIn
	send := func(port flow.Port, mac flow.MAC) {
		copy(frame[6:], mac[:])
		in = flow.PacketIn{Time: tr.now, Data: frame, Key: flow.Key{InPort: port}}
		packet.ParseEthernet(frame, &in.Key)
		if tr.a.Admit(&in) == Admitted && port == 1 {
			pass[mac == flow.MAC{2, 9}]++
		}
	}
	for range 5000 {
		tr.now += int64(time.Millisecond)
		if tr.a.Due(tr.now) {
			tr.changes = tr.a.Roll(tr.now, Pressure{}, tr.changes)
		}
		for range 50 {
			send(1, flow.MAC{2, 1})
		}
		if tr.now%int64(10*time.Millisecond) == 0 {
			send(1, flow.MAC{2, 9})
			send(2, flow.MAC{2, 8})
		}
	}
	if pass[true] != 500 {
		t.Errorf("%d of 500 packets of another address on the port admitted", pass[true])
	}
	if l := tr.a.Limited; len(l) != 1 || l[0].MAC != (flow.MAC{2, 1}) {
		t.Errorf("limits %+v, want the address named", l)
	}
}

// TestBehind: when packet-ins wait, less is a flood; a load that is shared is
// none even then.
func TestBehind(t *testing.T) {
	tr := newTrial()
	tr.run(time.Second, Pressure{Full: true}, load{1, 4000, classMulticast, 0}, load{2, 100, classUnicast, 3})
	if len(tr.a.Limited) != 1 || tr.a.Limited[0].Class != classMulticast {
		t.Errorf("%d limited", len(tr.a.Limited))
	}
	tr.whole(t, 2)
	tr = newTrial()
	tr.run(time.Second, Pressure{Full: true}, load{1, 20_000, classUnicast, 0}, load{2, 15_000, classUnicast, 3}, load{3, 25_000, classUnicast, 3})
	if len(tr.a.Limited) != 0 {
		t.Errorf("%d limited of a shared load", len(tr.a.Limited))
	}
	tr.whole(t, 1, 2, 3)
}

// TestProbesBounded: a flood of LLDP costs the port that sends it only.
func TestProbesBounded(t *testing.T) {
	tr := newTrial()
	tr.run(2*time.Second, Pressure{}, load{1, 50_000, ClassProbes, 0}, load{2, 40, ClassProbes, 1}, load{1, 100, classUnicast, 3})
	if n := tr.a.Shed[OverPort][ClassProbes]; n < 90_000 || len(tr.a.Limited) != 0 {
		t.Errorf("%d shed", n)
	}
	tr.whole(t, 2)
}

// TestFairness holds the rule on random loads: whoever sends less than the floor
// of a class is never shed; nobody who is limited gets more than the limit, nor
// less; and nobody who is not limited sends more than what is a flood.
func TestFairness(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		tr := newTrial()
		behind := rng.IntN(2) == 0
		var loads []load
		for i := range 2 + rng.IntN(20) {
			l := load{flow.Port(i + 1), float64(10 + rng.IntN(900)), classUnicast + Class(rng.IntN(2)), 1 + rng.IntN(50)}
			if rng.IntN(5) == 0 {
				l.rate, l.macs = float64(1000+rng.IntN(60_000)), rng.IntN(2)*40
			}
			if l.macs == 1 {
				l.rate = min(l.rate, 450)
			}
			loads = append(loads, l)
		}
		tr.run(time.Second, Pressure{Full: behind}, loads...)
		tr.reset()
		tr.run(2*time.Second, Pressure{Full: behind}, loads...)
		limit := map[flow.Port]float64{}
		for _, l := range tr.a.Limited {
			limit[l.Port] = l.Rate
		}
		for _, l := range loads {
			got := float64(tr.admitted[l.port])
			switch lim, limited := limit[l.port]; {
			case l.rate < 1000 && got < float64(tr.offered[l.port]):
				t.Errorf("seed %d: port %d sends %v per second and %v of %d were admitted", seed, l.port, l.rate, got, tr.offered[l.port])
			case limited && (got > 2.5*lim+1 || got < min(l.rate, lim)*1.9 && l.macs != 1):
				t.Errorf("seed %d: port %d is limited to %v per second and got %v in 2 s", seed, l.port, lim, got)
			case !limited && got < float64(tr.offered[l.port]):
				t.Errorf("seed %d: port %d is not limited and got %v of %d", seed, l.port, got, tr.offered[l.port])
			}
			for p, lim := range limit {
				if _, limited := limit[l.port]; !limited && l.rate > max(5000, lim*1.1) {
					t.Errorf("seed %d: port %d sends %v and is not limited, port %d is limited to %v", seed, l.port, l.rate, p, lim)
				}
			}
		}
	}
}

// TestPortTable: ports are found again as the table grows, and those beyond its
// bound share a slot.
func TestPortTable(t *testing.T) {
	account := trialMemory()
	a := NewFilter(trialRule, account)
	for round := range 2 {
		for p := range flow.Port(3000) {
			s := a.slot(p * 7)
			if s.port != p*7 || int(s.seen[classUnicast]) != round {
				t.Fatalf("port %d: %+v", p*7, s)
			}
			s.seen[classUnicast]++
		}
	}
	for p := range flow.Port(200_000) {
		a.slot(p)
	}
	if len(a.table) > slotsLast {
		t.Errorf("%d slots", len(a.table))
	}
	if want := len(a.table) * slotBytes; account.held > want || account.held < want-BufferStep {
		t.Errorf("%d octets counted, want %d", account.held, want)
	}
}

// TestPortTableIsPaidFor: a session without memory for more slots shares one.
func TestPortTableIsPaidFor(t *testing.T) {
	account := trialMemory()
	a := NewFilter(trialRule, account)
	if err := account.Take(256<<20 - 64<<10); err != nil {
		t.Fatal(err)
	}
	for p := range flow.Port(50_000) {
		a.slot(p)
	}
	if n := len(a.table) * slotBytes; n > 64<<10 || a.slot(49_999).port != flow.PortAny {
		t.Errorf("%d octets of slots, port 49999 has that of %v", n, a.slot(49_999).port)
	}
}

// TestAdmissionAllocatesNothing, also while ports are limited.
func TestAdmissionAllocatesNothing(t *testing.T) {
	tr := newTrial()
	tr.run(time.Second, Pressure{}, load{1, 50_000, classUnicast, 0}, load{2, 100, classUnicast, 1})
	if len(tr.a.Limited) != 1 {
		t.Fatal("not limited")
	}
	in := flow.PacketIn{Data: tr.frames[classUnicast], Key: flow.Key{InPort: 1}}
	packet.ParseEthernet(in.Data, &in.Key)
	n := 0
	if got := testing.AllocsPerRun(10_000, func() {
		tr.now += 1e5
		if tr.a.Due(tr.now) {
			tr.changes = tr.a.Roll(tr.now, Pressure{}, tr.changes[:0])
		}
		n++
		in.Time, in.Parsed = tr.now, false
		in.Key.InPort = flow.Port(1 + n%2)
		in.Data[11], in.Data[10] = byte(n), byte(n>>8)
		packet.ParseEthernet(in.Data, &in.Key)
		tr.a.Admit(&in)
	}); got > 0 {
		t.Errorf("%v allocations per packet-in", got)
	}
}

// BenchmarkAdmit measures what admission costs a packet-in: where nothing is
// limited, with 16 ports; and one of a flood, shed.
func BenchmarkAdmit(b *testing.B) {
	for _, flood := range []bool{false, true} {
		b.Run(fmt.Sprintf("flood=%v", flood), func(b *testing.B) {
			tr := newTrial()
			if flood {
				tr.run(time.Second, Pressure{}, load{1, 50_000, classUnicast, 0}, load{2, 100, classUnicast, 1})
			}
			in := flow.PacketIn{Data: tr.frames[classUnicast], Time: tr.now}
			packet.ParseEthernet(in.Data, &in.Key)
			n := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				n++
				in.Parsed = false
				in.Key.InPort = 1
				if !flood {
					in.Key.InPort = flow.Port(1 + n%16)
				}
				in.Data[11], in.Data[10] = byte(n), byte(n>>8)
				tr.a.Admit(&in)
			}
		})
	}
}

func addr4(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
