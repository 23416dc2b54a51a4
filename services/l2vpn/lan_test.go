package l2vpn

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// field is a network of switches of package oftest that has the entries of some
// vpls. A tunnel comes and goes by port 10 of its switches, which all are cables to
// one more switch, the hub, by its ports that have their numbers.
type field struct {
	t      *testing.T
	net    *oftest.Network
	device map[flow.DPID]*oftest.Device
	drive  map[flow.DPID]*oftest.Driver
	have   map[flow.DPID]map[string]flow.Entry
	meters map[flow.DPID]map[uint32]bool
	groups map[[2]flow.DPID]bool
	hosts  map[flow.Location]*oftest.Host
	left   map[*fabric]map[end]bool // ends that a change is about to take away
}

func newField(t *testing.T, switches int) *field {
	f := &field{t: t, net: oftest.NewNetwork(nil), device: map[flow.DPID]*oftest.Device{}, drive: map[flow.DPID]*oftest.Driver{}, have: map[flow.DPID]map[string]flow.Entry{},
		meters: map[flow.DPID]map[uint32]bool{}, groups: map[[2]flow.DPID]bool{}, hosts: map[flow.Location]*oftest.Host{}, left: map[*fabric]map[end]bool{}}
	for i := range switches + 1 {
		sw := flow.DPID(i + 1)
		if i == switches {
			sw = hub
		}
		f.device[sw] = f.net.Add(oftest.Config{DPID: sw, Ports: 20, Nicira: true})
		c, detach := oftest.Drive(f.device[sw])
		f.drive[sw], f.have[sw], f.meters[sw] = c, map[string]flow.Entry{}, map[uint32]bool{}
		t.Cleanup(func() {
			if n := c.Refusals(); n > 0 {
				t.Errorf("switch %v refuses %d messages", sw, n)
			}
			detach()
		})
		if sw != hub {
			defer f.wire(sw)
		}
	}
	return f
}

const (
	hub    flow.DPID = 1000
	tunnel flow.Port = 10
)

// wire joins a switch to the hub.
func (f *field) wire(sw flow.DPID) {
	f.net.Link(flow.Location{Switch: sw, Port: tunnel}, flow.Location{Switch: hub, Port: flow.Port(sw)})
	f.drive[sw].Flow(flow.Add, flow.Entry{Priority: flow.PriorityLabelled, Match: flow.Match{}.WithInPort(tunnel).WithEthType(flow.EthTypeMPLS), Goto: flow.TableLabels})
	f.drive[hub].Flow(flow.Add, flow.Entry{Priority: flow.PriorityLabel, Match: flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(uint32(sw)).WithMPLSBOS(0),
		Apply: []flow.Action{flow.PopMPLS(flow.EthTypeMPLS), flow.Output(flow.Port(sw))}})
}

// tunnel returns the group of a tunnel: it is made when it is first asked for.
func (f *field) tunnel(from, to flow.DPID) uint32 {
	id := flow.TunnelGroups + uint32(to)
	if f.groups[[2]flow.DPID{from, to}] {
		return id
	}
	f.groups[[2]flow.DPID{from, to}] = true
	f.drive[from].Group(flow.Add, flow.Group{Kind: flow.GroupKindIndirect, ID: id, Buckets: []flow.Bucket{{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny,
		Actions: []flow.Action{flow.PushMPLS(), flow.SetMPLSLabel(uint32(to)), flow.SetEthDst(flow.MAC{2, 0, 0, 0, 0, byte(to)}), flow.Output(tunnel)}}}})
	return id
}

// declare gives a switch the entries that it should have, and checks them as
// flowrules does.
func (f *field) declare(sw flow.DPID, s *set) {
	for _, m := range s.meters {
		if !f.meters[sw][m.ID] {
			f.meters[sw][m.ID] = true
			f.drive[sw].Meter(flow.Add, m)
		}
	}
	for _, g := range s.groups {
		if err := g.Check(); err != nil {
			f.t.Fatalf("switch %v: %v", sw, err)
		}
		command := flow.Add
		if f.groups[[2]flow.DPID{sw, flow.DPID(g.ID)}] {
			command = flow.Modify
		}
		f.groups[[2]flow.DPID{sw, flow.DPID(g.ID)}] = true
		f.drive[sw].Group(command, g)
	}
	want := map[string]flow.Entry{}
	for _, e := range s.entries {
		key := fmt.Sprint(e.Table, e.Priority, e.Match.Text())
		if o, twice := want[key]; twice && !o.Same(&e) {
			f.t.Fatalf("switch %v: two entries %s", sw, key)
		}
		if err := e.Match.CheckActions(e.Apply); err != nil {
			f.t.Fatalf("switch %v: entry %s: %v", sw, key, err)
		}
		if e.IdleTimeout|e.HardTimeout != 0 {
			f.t.Fatalf("switch %v: entry %s ends by itself while the controller is away", sw, key)
		}
		want[key] = e
	}
	for key, e := range f.have[sw] {
		if _, is := want[key]; !is {
			f.drive[sw].Flow(flow.DeleteStrict, e)
		}
	}
	for _, e := range want {
		f.drive[sw].Flow(flow.Add, e)
	}
	f.have[sw] = want
}

// host returns what is attached at an end's port.
func (f *field) host(at flow.Location) *oftest.Host {
	if f.hosts[at] == nil {
		f.hosts[at] = f.net.Host(at, nil)
	}
	return f.hosts[at]
}

// frame returns a frame as it is on the wire at an end.
func frame(e end, src, dst flow.MAC, n int) []byte {
	b := append(packet.AppendEthernet(nil, packet.Ether{Dst: dst, Src: src}, 0x9999), fmt.Sprintf("frame %08d", n)...)
	for _, v := range []struct{ id, kind uint16 }{{e.inner, flow.EthTypeVLAN}, {e.vlan, map[bool]uint16{true: flow.EthTypeQinQ, false: flow.EthTypeVLAN}[e.inner != 0]}} {
		if v.id != 0 {
			b, _ = packet.Apply(b, flow.PushVLAN(v.kind))
			b, _ = packet.Apply(b, flow.SetVLAN(v.id))
		}
	}
	return b
}

// arrived returns how often each end of some circuits has got a frame since the last call.
func (f *field) arrived(all []*fabric, src, dst flow.MAC, n int) map[*fabric]map[end]int {
	got := map[*fabric]map[end]int{}
	counted := map[flow.Location]int{}
	for _, v := range all {
		got[v] = map[end]int{}
	}
	received := map[flow.Location][][]byte{}
	for at, h := range f.hosts {
		received[at] = h.Received()
	}
	for _, v := range all {
		for _, e := range slices.Concat(v.ends, slices.Collect(maps.Keys(f.left[v]))) {
			want := frame(e, src, dst, n)
			for _, b := range received[e.at] {
				if bytes.HasPrefix(b, want) {
					got[v][e]++
					counted[e.at]++
				}
			}
		}
	}
	for at, list := range received {
		if counted[at] != len(list) {
			f.t.Fatalf("port %v: %d frames of %d are those sent: %x", at, counted[at], len(list), list)
		}
	}
	return got
}

var everybody = flow.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// drawn is random vpls in a random network.
type drawn struct {
	*field
	r      *rand.Rand
	g      core
	labels uint32
	all    []*fabric
	n      int
}

func newDrawn(t *testing.T, seed uint64) *drawn {
	r := rand.New(rand.NewPCG(seed, 1))
	nodes := 2 + r.IntN(8)
	d := &drawn{field: newField(t, nodes), r: r, g: core{}, labels: flow.CircuitLabels}
	join := func(a, b flow.DPID) {
		x, y := flow.Location{Switch: a, Port: flow.Port(100 + b)}, flow.Location{Switch: b, Port: flow.Port(100 + a)}
		weight := uint32(1 + r.IntN(3))
		d.g[x], d.g[y] = map[flow.Location]uint32{y: weight}, map[flow.Location]uint32{x: weight}
	}
	for b := 2; b <= nodes; b++ {
		join(flow.DPID(1+r.IntN(b-1)), flow.DPID(b))
	}
	for range nodes {
		if a, b := flow.DPID(1+r.IntN(nodes)), flow.DPID(1+r.IntN(nodes)); a != b {
			join(a, b)
		}
	}
	for i := range 2 {
		v := &fabric{circuit: &circuit{Circuit: &api.Circuit{Id: uint32(i + 1), Name: fmt.Sprint("lan", i), Type: vpls}}, lan: newLAN(100, time.Minute), storm: 1_000_000, group: d.tunnel}
		if d.all = append(d.all, v); r.IntN(2) == 0 {
			v.leaves = map[end]bool{}
		}
		for range 2 + r.IntN(5) {
			d.join(v)
		}
	}
	return d
}

// join gives a vpls another end.
func (d *drawn) join(v *fabric) {
	e := end{at: flow.Location{Switch: flow.DPID(1 + d.r.IntN(len(d.drive)-1)), Port: flow.Port(1 + d.r.IntN(4))}}
	if d.r.IntN(2) == 0 {
		e.vlan = uint16(1 + d.r.IntN(3))
		if d.r.IntN(3) == 0 {
			e.inner = uint16(1 + d.r.IntN(3))
		}
	}
	for _, o := range d.all {
		if slices.ContainsFunc(slices.AppendSeq(slices.Clone(o.ends), maps.Keys(d.left[o])), func(x end) bool {
			// What a VLAN's new end is sent before its switch has it, the port's end has.
			return x.clashes(e) || x.at == e.at && x.whole() != e.whole() && d.n > 0
		}) {
			return
		}
	}
	if slices.ContainsFunc(v.ends, func(o end) bool { return o.unjoined(e) != "" }) {
		return
	}
	d.host(e.at)
	d.labels += 2
	if v.leaves != nil && len(v.ends) > len(v.leaves) && d.r.IntN(2) == 0 {
		v.leaves[e] = true
	}
	v.ends = append(slices.Clone(v.ends), e)
	v.Members = append(slices.Clone(v.Members), &api.CircuitMember{Label: d.labels, StormMeter: flow.CircuitMeters + d.labels})
}

// grow returns a new tree of a vpls.
func (d *drawn) grow(v *fabric) []arc {
	tree, err := d.g.segments(v.edges(), func(flow.DPID) bool { return true }, d.r.IntN(2) == 0, d.r.Uint64())
	if err != nil {
		d.t.Fatal(err)
	}
	if v.leaves != nil {
		tree = withLeaves(tree)
	}
	for i := range tree {
		d.labels++
		tree[i].label = d.labels
	}
	return tree
}

// besides returns what is beside those ends that are ports.
func (d *drawn) besides() besides {
	all := besides{}
	for _, v := range d.all {
		for _, e := range v.ends {
			if whole := (end{at: e.at}); e.vlan != 0 {
				all[whole] = joined(append(all[whole].ranges(), e.vlans().ranges()...))
			}
		}
	}
	return all
}

// declareAll gives switches their entries, in any order; between says what to do after each.
func (d *drawn) declareAll(between func()) {
	for _, i := range d.r.Perm(len(d.drive) - 1) {
		sw := flow.DPID(i + 1)
		s := set{besides: d.besides()}
		ports := map[flow.Port]map[end]map[string]bool{}
		for _, v := range d.all {
			s.lanEntries(v, sw)
			for _, e := range v.ends {
				if e.at.Switch == sw {
					note2(ports, e)
				}
			}
		}
		for port, ends := range ports {
			guards(&s, port, ends)
		}
		d.declare(sw, &s)
		between()
	}
}

func note2(ports map[flow.Port]map[end]map[string]bool, e end) {
	if ports[e.at.Port] == nil {
		ports[e.at.Port] = map[end]map[string]bool{}
	}
	ports[e.at.Port][e] = nil
}

// cast has every end send a frame to all: each other end of the vpls has to get it once, but no
// leaf that of a leaf; or at most once, where a change is under way. Nobody else does.
func (d *drawn) cast(exactly bool) {
	d.t.Helper()
	for _, v := range d.all {
		for i, e := range v.ends {
			d.n++
			src := flow.MAC{2, byte(v.Id), byte(i), 0, 0, 1}
			for _, dst := range []flow.MAC{everybody, {2, 9, 9, 9, 9, 9}} {
				d.host(e.at).Send(frame(e, src, dst, d.n))
				got := d.arrived(d.all, src, dst, d.n)
				for _, o := range d.all {
					for _, x := range o.ends {
						want := 1
						if o != v || x == e || v.leaves[x] && v.leaves[e] {
							want = 0
						}
						if n := got[o][x]; n > want || exactly && n != want {
							d.t.Fatalf("vpls %d: frame from %v: %v of vpls %d gets it %d times\nends %v\ntree %v", v.Id, e, x, o.Id, n, v.ends, v.active)
						}
					}
				}
			}
		}
	}
	if l := d.net.Loops(); len(l) > 0 {
		d.t.Fatal(l)
	}
	d.net.Forget()
}

// TestLANRandom draws networks and vpls whose ends come and go: a frame to all
// arrives once at each other end and nowhere else; while a change is under way, with switches
// changed in any order, never twice nor in a circle.
func TestLANRandom(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := newDrawn(t, seed)
			none := func() {}
			for _, v := range d.all {
				v.active = d.grow(v)
				v.trees = [][]arc{v.active}
			}
			d.declareAll(none)
			d.cast(true)
			for range 4 {
				for _, v := range d.all {
					for range d.r.IntN(3) {
						d.join(v)
					}
					if i := d.r.IntN(len(v.ends)); len(v.ends) > 2 && d.r.IntN(2) == 0 {
						d.left[v] = map[end]bool{v.ends[i]: true}
						v.ends, v.Members = slices.Delete(slices.Clone(v.ends), i, i+1), slices.Delete(slices.Clone(v.Members), i, i+1)
					}
					v.trees = append(v.trees, d.grow(v))
				}
				half := func() { d.cast(false) }
				d.declareAll(half) // the new tree is there
				for _, v := range d.all {
					v.active = v.trees[len(v.trees)-1]
				}
				d.declareAll(half) // ends send to it
				clear(d.left)
				d.cast(true)
				for _, v := range d.all {
					v.trees = [][]arc{v.active}
				}
				d.declareAll(func() { d.cast(true) }) // the old one goes
			}
		})
	}
}

// TestLANKnown has ends learn from each other: a frame to an address that is known gets
// there alone, from a sender that is known without the controller, from others through the
// flood of nobody but by their entry to the controller.
func TestLANKnown(t *testing.T) {
	for seed := range uint64(20) {
		d := newDrawn(t, seed)
		now := time.Unix(1e9, 0)
		for _, v := range d.all {
			v.active = d.grow(v)
			v.trees = [][]arc{v.active}
		}
		d.declareAll(func() {})
		mac := func(v *fabric, i int) flow.MAC { return flow.MAC{2, 0, byte(i), 0, 0, 1} } // both vpls have the same
		for _, v := range d.all {
			for i, e := range v.ends {
				d.host(e.at).Send(frame(e, mac(v, i), everybody, 0))
				in := d.drive[e.at.Switch].PacketIns()
				if len(in) != 1 || in[0].Key.TunnelID != v.came(i) || in[0].Table != flow.TableCircuits {
					t.Fatalf("end %v: packet-ins %+v", e, in)
				}
				packet.Parse(in[0].Data, &in[0].Key)
				if in[0].Key.EthSrc != mac(v, i) || in[0].Key.VLAN != 0 {
					t.Fatalf("end %v: packet-in %x", e, in[0].Data)
				}
				v.lan.learn(in[0].Key.EthSrc, e, now)
			}
		}
		for _, h := range d.hosts {
			h.Received()
		}
		d.declareAll(func() {})
		for _, v := range d.all {
			for i, e := range v.ends {
				for j, far := range v.ends {
					d.n++
					d.host(e.at).Send(frame(e, mac(v, i), mac(v, j), d.n))
					got := d.arrived(d.all, mac(v, i), mac(v, j), d.n)
					want := map[end]int{far: 1}
					if !v.reaches(i, j) {
						want = map[end]int{} // it never comes back, nor to another leaf
					}
					for _, o := range d.all {
						if o != v {
							want = map[end]int{}
						}
						if o == v && !maps.Equal(got[o], want) || o != v && len(got[o]) > 0 {
							t.Fatalf("seed %d: vpls %d: %v to %v: vpls %d gets it at %v", seed, v.Id, e, far, o.Id, got[o])
						}
						want = map[end]int{far: 1}
						if !v.reaches(i, j) {
							want = map[end]int{}
						}
					}
				}
			}
		}
		for sw, c := range d.drive {
			if len(c.PacketIns()) > 0 {
				t.Fatalf("switch %v sends frames of known senders to the controller", sw)
			}
		}
		d.cast(true)
	}
}
