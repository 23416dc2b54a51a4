package hosts

import (
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// crowd returns a rig with 256 known hosts, and packets between them.
func crowd(t testing.TB) (*rig, []*flow.PacketIn) {
	r := newRig(t, nil)
	var list []*flow.PacketIn
	for i := range 256 {
		a, b := mac(byte(i)), mac(byte(i+1))
		r.accept(at(1, flow.Port(i%16+1)), udp(a, b, "10.0.0.1", "10.0.0.2"))
		list = append(list, r.packetIn(at(1, flow.Port(i%16+1)), udp(a, b, "10.0.0.1", "10.0.0.2")))
	}
	return r, list
}

// BenchmarkKnownHost is the stage for a packet between known hosts.
func BenchmarkKnownHost(b *testing.B) {
	r, list := crowd(b)
	s := r.stages[1]
	var d flow.Decision
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		in := list[i&15]
		i++
		if s(in, &d) != flow.Next || in.Dst == (flow.Location{}) {
			b.Fatal("not known")
		}
	}
}

// BenchmarkKnownHostMany is the same with all of the hosts.
func BenchmarkKnownHostMany(b *testing.B) {
	r, list := crowd(b)
	s := r.stages[1]
	var d flow.Decision
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		in := list[i&255]
		i++
		s(in, &d)
	}
}

// BenchmarkKnownHostParallel is the same from many switches at once.
func BenchmarkKnownHostParallel(b *testing.B) {
	r, list := crowd(b)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		s := r.open(1, slog.New(slog.NewTextHandler(io.Discard, nil)))
		var d flow.Decision
		own := make([]flow.PacketIn, 16)
		for i := range own {
			own[i] = *list[i]
		}
		for i := 0; p.Next(); i++ {
			s(&own[i&15], &d)
		}
	})
}

// BenchmarkKnownARP is an ARP request between known hosts: the long way.
func BenchmarkKnownARP(b *testing.B) {
	r := newRig(b, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	r.accept(at(1, 2), arpRequest(mac(2), "10.0.0.2", "10.0.0.1"))
	in := r.packetIn(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	var d flow.Decision
	b.ReportAllocs()
	for b.Loop() {
		if r.stages[1](in, &d) != flow.Next || in.Dst != at(1, 2) {
			b.Fatal("not known")
		}
	}
}

// BenchmarkRefused is what a packet of an attacker costs at a port whose hosts are limited by
// name: where only hosts.port_limit is reached, packets pass unlearnt.
func BenchmarkRefused(b *testing.B) {
	r := newRig(b, func(c *Config) { c.Ports = []PortSecurity{{Port: "1/1", MaxHosts: 1}} })
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	in := r.packetIn(at(1, 1), udp(mac(2), mac(1), "10.0.0.1", "10.0.0.2"))
	var d flow.Decision
	b.ReportAllocs()
	for b.Loop() {
		if r.stages[1](in, &d) != flow.Drop {
			b.Fatal("not refused")
		}
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	r, list := crowd(t)
	var d flow.Decision
	i := 0
	if n := testing.AllocsPerRun(1000, func() { r.stages[1](list[i&255], &d); i++ }); n != 0 {
		t.Errorf("%v allocations per packet of a known host", n)
	}
	arp := r.packetIn(at(1, 1), arpRequest(mac(0), "10.0.0.1", "10.0.0.2"))
	r.stages[1](arp, &d)
	if n := testing.AllocsPerRun(1000, func() { r.stages[1](arp, &d) }); n != 0 {
		t.Errorf("%v allocations per ARP of a known host", n)
	}
}

// TestConcurrency has hosts move and come and go on many switches at once;
// run it with -race.
func TestConcurrency(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Moves, c.Verify, c.Penalty = 1000, 20e6, 20e6 })
	frames := map[byte][]byte{}
	for h := range byte(20) {
		frames[h] = arpRequest(mac(h), "10.0.0."+itoa(h+1), "10.0.0."+itoa(h%19+1))
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	var work sync.WaitGroup
	for sw := range flow.DPID(6) {
		work.Go(func() {
			s := r.open(sw+1, log)
			var d flow.Decision
			for i := range 3000 {
				in := r.packetIn(at(sw+1, flow.Port(i%4+1)), frames[byte(i%20)])
				in.Time = r.now + int64(i)*ms
				d.Reset()
				s(in, &d)
			}
		})
	}
	stop, idle := make(chan struct{}), make(chan struct{})
	events := 0
	go func() {
		defer close(idle)
		for i := int64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			d := &flow.Decision{}
			r.advance(r.now+i*10*ms, d)
			sw := flow.DPID(i%6 + 1)
			r.portChanged(r.now+i*ms, sw, portMsg(sw, flow.Port(i%4+1), i%3 == 0), false)
			r.roleChanged(r.now, at(sw, flow.Port(i%4+1)), []string{"link", "edge"}[i%2])
			r.publishMarked(r.now, nil, func(*api.HostChanged) { events++ })
			r.list()
			_, _ = r.find("10.0.0.1", -1)
		}
	}()
	work.Wait()
	close(stop)
	<-idle
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	r.all(func(h *host) {
		n++
		if _, ok := h.at.Load().hosts[h]; !ok || h.gone.Load() {
			t.Errorf("host %v is not at its place", h.id.mac())
		}
		for _, a := range h.addresses {
			if r.holder(a.ip, h.id.vlan()) != h {
				t.Errorf("address %v of %v is another's", a.ip, h.id.mac())
			}
		}
	})
	if n != r.size() {
		t.Errorf("%d hosts, counted %d", n, r.size())
	}
}

// An address in a thousand VLANs, as a router has it, takes as many places in a
// cache as a thousand addresses.
func TestVLANsSpread(t *testing.T) {
	sets := map[uint64]bool{}
	for vlan := range uint16(1000) {
		sets[newID(mac(1), vlan+1).hash()>>54] = true
	}
	if len(sets) < 590 { // of 1,024; 638 are expected
		t.Errorf("1,000 VLANs fall on %d of 1,024 sets", len(sets))
	}
}
