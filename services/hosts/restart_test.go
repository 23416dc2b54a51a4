package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// counting is a bucket that counts what is written.
type counting struct {
	weft.Bucket
	writes  int
	largest int
}

func (c *counting) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	c.writes++
	c.largest = max(c.largest, len(value))
	return c.Bucket.Update(ctx, key, value, revision)
}

// open returns a shelf on a bucket, its content loaded into the rig's table.
func (r *rig) load(b weft.Bucket) *persister {
	r.t.Helper()
	s := &persister{bucket: b}
	if err := s.load(r.t.Context(), r.now, r.table, func(key string, err error) { r.t.Errorf("%s: %v", key, err) }); err != nil {
		r.t.Fatal(err)
	}
	return s
}

func newBucket(t *testing.T) *counting {
	b, err := wefttest.NewStore().Bucket(t.Context(), "hosts.hosts")
	if err != nil {
		t.Fatal(err)
	}
	return &counting{Bucket: b}
}

// described is the hosts of a table, one line each.
func described(t *table) (list []string) {
	for _, h := range t.list().Hosts {
		list = append(list, fmt.Sprint(h.Mac, h.Vlan, h.At, h.Ipv4, h.Ipv6, h.Moves, h.FirstSeen[:19]))
	}
	return list
}

func TestHostsSurvive(t *testing.T) {
	r := newRig(t, func(c *Config) { c.PortLimit = 5000; c.AddressLimit = 100 })
	b := newBucket(t)
	s := r.load(b)
	const many = 3000
	for i := range uint64(many) {
		src := flow.MACFrom(0x020000000000 + i)
		from := fmt.Sprintf("10.1.%d.%d", i/200, i%200+1)
		r.accept(at(flow.DPID(1+i%7), flow.Port(1+i%3)), arpRequest(src, from, "10.0.0.2"))
		r.accept(at(flow.DPID(1+i%7), flow.Port(1+i%3)), advert(src, fmt.Sprintf("fd00::%x", i+1)))
	}
	save := func() int {
		r.changes()
		before := b.writes
		for len(r.pages.dirty) > 0 {
			if err := s.save(t.Context(), r.table); err != nil {
				t.Fatal(err)
			}
		}
		return b.writes - before
	}
	if n := save(); n > many/pageHosts+2 {
		t.Errorf("%d writes for %d hosts", n, many)
	}
	r.now += int64(time.Minute)
	r.portChanged(r.now, 6, portMsg(6, 3, false), false)
	r.accept(at(9, 9), arpRequest(mac(5), "10.1.0.6", "10.0.0.2")) // it has moved
	r.portChanged(r.now, 6, portMsg(6, 3, true), false)
	r.wantAt(mac(5), at(9, 9))
	r.table.mu.Lock()
	r.table.remove(r.host(newID(mac(6), 0)))
	r.table.mu.Unlock()
	r.accept(at(1, 1), arpRequest(flow.MACFrom(0x020000ffffff), "10.9.0.1", "10.0.0.2"))
	if n := save(); n > 3 {
		t.Errorf("%d writes for three changes", n)
	}
	if b.largest >= 512<<10 {
		t.Errorf("a value of %d octets", b.largest)
	}

	next := newRig(t, func(c *Config) { *c = *r.cfg })
	next.now = r.now
	next.load(b)
	if got, want := described(next.table), described(r.table); !slices.Equal(got, want) || len(got) != many {
		t.Errorf("%d hosts, had %d", len(got), len(want))
	}
	next.wantChanges() // nothing before the switches are there
	var ports []*api.Port
	for p := range flow.Port(10) {
		ports = append(ports, portMsg(1, p, true))
	}
	for sw := range flow.DPID(10) {
		next.switchChanged(next.now, sw, true, ports)
	}
	if got := next.changes(); len(got) != many || strings.Count(strings.Join(got, "\n"), "learnt") != many {
		t.Errorf("%d events, want that of each host", len(got))
	}
	if n := len(next.pages.dirty); n != 0 {
		t.Errorf("%d pages to be written, though nothing has changed", n)
	}
}

// TestAPageHasRoom fills a page with hosts that have as many addresses as are
// kept.
func TestAPageHasRoom(t *testing.T) {
	h := &host{id: newID(flow.MACFrom(0xffffffffffff), 4095), first: 1 << 60, moves: 1 << 31}
	h.at.Store(&place{Location: at(0xffffffffffffffff, 0xffffff00)})
	for i := range 100 {
		h.addresses = append(h.addresses, address{ip: ip(fmt.Sprintf("2001:db8:1111:2222:3333:4444:5555:%04x", 0x6000+i)), confirmed: 1<<60 + int64(i)*1e9})
	}
	line := string(appendEntry(nil, h))
	if n := len(line) * pageHosts; n >= 512<<10 {
		t.Errorf("a page has up to %d octets", n)
	}
	e, err := parseEntry(line)
	if err != nil || len(e.addresses) != pageAddresses || e.addresses[0].ip != h.addresses[99].ip || e.id != h.id || e.at != h.at.Load().Location {
		t.Errorf("%+v, %v: want the addresses confirmed last", e, err)
	}
	for _, bad := range []string{"", "x 0 1 1 1 1 1", "02:00:00:00:00:01 5000 1 1 1 1 1", "02:00:00:00:00:01 0 zz 1 1 1 1", "02:00:00:00:00:01 0 1 1 1 1 1 x@1", "02:00:00:00:00:01 0 1 1 1 1 1 ::1"} {
		if _, err := parseEntry(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestRestoredHostIsAskedBeforeItAges shows that a host that speaks by routes
// only is not given up because of the restart, and a silent one is.
func TestRestoredHostIsAskedBeforeItAges(t *testing.T) {
	r := newRig(t, nil)
	b := newBucket(t)
	s := r.load(b)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	r.accept(at(1, 2), arpRequest(mac(2), "10.0.0.2", "10.0.0.1"))
	r.changes()
	if err := s.save(t.Context(), r.table); err != nil {
		t.Fatal(err)
	}
	next := newRig(t, nil)
	next.now = r.now + int64(time.Hour)
	next.load(b)
	next.switchChanged(next.now, 1, true, []*api.Port{portMsg(1, 1, true), portMsg(1, 2, true)})
	next.run(11*time.Minute, next.alive(mac(1), at(1, 1), "10.0.0.1"))
	next.wantAt(mac(1), at(1, 1))
	next.wantAt(mac(2), flow.Location{})
}

// TestSwitchThatDoesNotComeBack has the hosts of an earlier run given up with
// their switch, and says so.
func TestSwitchThatDoesNotComeBack(t *testing.T) {
	r := newRig(t, nil)
	b := newBucket(t)
	s := r.load(b)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	r.changes()
	if err := s.save(t.Context(), r.table); err != nil {
		t.Fatal(err)
	}
	next := newRig(t, nil)
	next.now = r.now
	next.load(b)
	next.run(50*time.Second, nil)
	next.wantAt(mac(1), at(1, 1))
	next.run(15*time.Second, nil)
	next.wantChanges("gone " + mac(1).String() + " " + at(1, 1).String())
}

// TestSaidAll: a service that has restarted has said all when each host that it knew is
// published or given up: that of a switch that is back, of a port that is blocked, of one
// that is down, and of a switch that does not come back.
func TestSaidAll(t *testing.T) {
	r := newRig(t, nil)
	b := newBucket(t)
	s := r.load(b)
	if !r.saidAll() {
		t.Error("there was no earlier run, and it has not said all")
	}
	for i, l := range []flow.Location{at(1, 1), at(2, 1), at(3, 1), at(4, 1)} {
		r.accept(l, arpRequest(mac(byte(i+1)), fmt.Sprintf("10.0.0.%d", i+1), "10.0.0.9"))
	}
	r.changes()
	if err := s.save(t.Context(), r.table); err != nil {
		t.Fatal(err)
	}
	next := newRig(t, nil)
	next.now = r.now
	next.load(b)
	for i, step := range []func(){
		func() {},
		func() { next.switchChanged(next.now, 1, true, []*api.Port{portMsg(1, 1, true)}) },
		func() {
			next.roleChanged(next.now, at(2, 1), flow.RoleBlocked.String())
			next.switchChanged(next.now, 2, true, []*api.Port{portMsg(2, 1, true)})
		},
		func() {
			next.switchChanged(next.now, 3, true, []*api.Port{portMsg(3, 1, false)})
			next.run(next.cfg.PortGrace+time.Second, nil)
		},
	} {
		step()
		next.changes()
		if next.saidAll() || next.unsaid != 4-i {
			t.Errorf("step %d: %d hosts are not said, want %d", i, next.unsaid, 4-i)
		}
	}
	next.run(next.cfg.SwitchGrace, nil)
	next.wantChanges("gone " + mac(4).String() + " " + at(4, 1).String())
	if !next.saidAll() {
		t.Errorf("%d hosts are not said when all are given up", next.unsaid)
	}
}

// TestDyingInstance has an instance write after its successor has begun.
func TestDyingInstance(t *testing.T) {
	b := newBucket(t)
	old, next := newRig(t, nil), newRig(t, nil)
	first := old.load(b)
	old.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	old.changes()
	second := next.load(b)
	if err := first.save(t.Context(), old.table); err != nil { // just in time: nothing to stand in its way
		t.Fatal(err)
	}
	next.accept(at(1, 2), arpRequest(mac(2), "10.0.0.2", "10.0.0.2"))
	next.changes()
	if err := second.save(t.Context(), next.table); err != nil {
		t.Fatal(err)
	}
	old.accept(at(1, 1), arpRequest(mac(3), "10.0.0.3", "10.0.0.2"))
	old.changes()
	if err := first.save(t.Context(), old.table); !errors.Is(err, errSuperseded) {
		t.Errorf("%v, want that another instance has taken over", err)
	}
	last := newRig(t, nil)
	last.load(b)
	if got := described(last.table); len(got) != 1 || !strings.Contains(got[0], mac(2).String()) {
		t.Errorf("kept are %q", got)
	}
}

// TestServiceRestart kills the service and starts it while ports have changed.
func TestServiceRestart(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("port_grace: 50ms")
		wefttest.Fake(h, api.Send, func(context.Context, *flow.Decision) (*api.ApplyResult, error) { return &api.ApplyResult{}, nil })
		connect := func(ports ...flow.Port) {
			m := &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true}}
			for _, p := range ports {
				m.Ports = append(m.Ports, portMsg(1, p, true))
			}
			wefttest.Publish(h, api.SwitchChangedEvent, m)
		}
		wefttest.Next(h, api.HostsSettledEvent) // there was no earlier run
		connect(1, 2, 3)
		for i := range byte(3) {
			h.Packet(1, flow.Port(i+1), arpRequest(mac(i+1), fmt.Sprintf("10.0.0.%d", i+1), "10.0.0.9"))
			wefttest.Next(h, api.HostChangedEvent)
		}
		for deadline := time.Now().Add(testwait.Limit); ; time.Sleep(10 * time.Millisecond) {
			v, _, err := h.Bucket("hosts").Get(t.Context(), "page/000000")
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("kept is %q, %v", v, err)
			}
			if strings.Count(string(v), "10.0.0.") == 3 {
				break
			}
		}
		h.Restart()
		// At once, before anything is replayed, packets find their destination.
		in := wefttest.NewPacketIn(1, 1, udp(mac(1), mac(2), "10.0.0.1", "10.0.0.2"))
		if v, _ := h.PacketIn(in); v != flow.Next || h.Mode == wefttest.Pointer && in.Dst != at(1, 2) {
			t.Errorf("verdict %v, destination %v", v, in.Dst)
		}
		wefttest.None(h, api.HostChangedEvent, 50*time.Millisecond)
		wefttest.None(h, api.HostsSettledEvent, 0)
		wefttest.Publish(h, api.PortRoleChangedEvent, &api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(at(1, 3)), Role: "link"}})
		connect(1, 3)
		events := map[string]string{}
		for range 3 {
			e := wefttest.Next(h, api.HostChangedEvent)
			events[e.Host.Mac] = e.Change
		}
		if events[mac(1).String()] != "learnt" || events[mac(2).String()] != "gone" || events[mac(3).String()] != "gone" {
			t.Errorf("events %v; want the first host again, the others gone", events)
		}
		wefttest.Next(h, api.HostsSettledEvent)
		found, err := wefttest.Call(h, api.FindHost, &api.FindHostRequest{Address: "10.0.0.1", Vlan: -1})
		if err != nil || found.At.Flow() != at(1, 1) {
			t.Errorf("%v, %v", found, err)
		}
		// The southbound restarts: the switch connects again without having left.
		connect(1, 3)
		wefttest.None(h, api.HostChangedEvent, 150*time.Millisecond)
	})
}
