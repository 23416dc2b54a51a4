package nib

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// every is all parts.
const every = end - 1

// kinds are the kinds of things, all but ports, with the events that say how one is.
var kinds = map[string]func(key, value int, gone bool) any{
	"switch": func(key, value int, gone bool) any {
		e := &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(key).String(), Connected: !gone, Since: fmt.Sprint(value)}}
		for p := 1; !gone && p <= 1+value%3; p++ {
			e.Ports = append(e.Ports, port(key, p, value))
		}
		return e
	},
	"role": func(key, value int, gone bool) any {
		at := &api.Location{Dpid: flow.DPID(1 + key/2).String(), Port: uint32(key)}
		return &api.PortRoleChanged{Port: &api.PortRole{At: at, Cause: fmt.Sprint(value)}, Gone: gone}
	},
	"link": func(key, value int, gone bool) any {
		src, dst := &api.Location{Dpid: flow.DPID(1).String(), Port: uint32(key)}, &api.Location{Dpid: flow.DPID(2).String(), Port: uint32(key)}
		return &api.LinkChanged{Link: &api.Link{Src: src, Dst: dst, Weight: uint32(value)}, Removed: gone}
	},
	"host": func(key, value int, gone bool) any {
		e := &api.HostChanged{Host: &api.Host{Mac: flow.MACFrom(uint64(key)).String(), Vlan: uint32(key % 2), FirstSeen: fmt.Sprint(value)}}
		if gone {
			e.Change = "gone"
		}
		return e
	},
	"segment": func(key, value int, gone bool) any {
		return &api.SegmentChanged{Segment: &api.Segment{Vlan: uint32(key), Tenant: fmt.Sprint(value)}, Removed: gone}
	},
	"node": func(key, value int, gone bool) any {
		return &api.NodeChanged{Node: &api.Node{Report: &api.NodeReport{Dpid: flow.DPID(key).String()}, Agent: fmt.Sprint(value)}, Gone: gone}
	},
	"tunnel port": func(key, value int, gone bool) any {
		at := &api.Location{Dpid: flow.DPID(key).String(), Port: 1}
		return &api.TunnelPortChanged{Port: &api.TunnelPort{Kind: "gre", A: at, B: at, Key: uint32(value)}, Gone: gone}
	},
	"settled": func(key, _ int, gone bool) any {
		return &api.RolesSettled{Dpid: flow.DPID(key).String(), Gone: gone}
	},
}

func port(sw, number, value int) *api.Port {
	return &api.Port{Dpid: flow.DPID(sw).String(), Port: uint32(number), Name: fmt.Sprint(value)}
}

// text returns what the facts of a snapshot say, by part and key: what a fold of
// events is compared with. Of switches that are gone there is nothing, and nothing
// of their ports.
func text(s Snapshot) map[string]string {
	m := map[string]string{}
	put := func(kind string, key any, of proto.Message) {
		m[fmt.Sprint(kind, " ", key)] = line(of)
	}
	for f := range s.Switches() {
		if !f.Is.Switch.Connected {
			continue
		}
		put("switch", f.Key, f.Is.Switch)
		for p := range s.Ports(f.Key) {
			put("port", p.Key, p.Is)
		}
	}
	for f := range s.roles.all() {
		put("role", f.Key, f.Is)
	}
	for f := range s.Links() {
		put("link", f.Key, f.Is)
	}
	for f := range s.Hosts() {
		put("host", f.Key, f.Is)
	}
	for f := range s.Segments() {
		put("segment", f.Key, f.Is)
	}
	for f := range s.Nodes() {
		put("node", f.Key, f.Is)
	}
	for f := range s.TunnelPorts() {
		put("tunnel port", f.Key, f.Is)
	}
	for f := range s.settled.all() {
		put("settled", f.Key, f.Is)
	}
	return m
}

// publisher is one run of all publishers of a partition: what it says, in order.
type publisher struct {
	source Source
	queue  []any // events; nil is the mark that what was retained is complete, a Source that its run has ended
	state  map[string]any
	spoken map[string]bool             // that it has said anything of
	ports  map[string]*api.PortChanged // since the event of the switch
}

// say queues an event and follows what is retained.
func (p *publisher) say(kind string, key, value int, gone bool) {
	name := fmt.Sprint(kind, " ", key)
	e := kinds[kind](key, value, gone)
	about, _ := thing(e)
	p.queue, p.spoken[about] = append(p.queue, e), true
	if delete(p.state, name); !gone {
		p.state[name] = e
	}
	if kind == "switch" {
		maps.DeleteFunc(p.ports, func(at string, _ *api.PortChanged) bool { return strings.HasPrefix(at, name+"/") })
	}
}

// sayPort queues an event of a port of a connected switch.
func (p *publisher) sayPort(sw, number, value int, removed bool) {
	name := fmt.Sprint("switch ", sw)
	if p.state[name] == nil {
		return
	}
	e := &api.PortChanged{Port: port(sw, number, value), Removed: removed}
	p.queue = append(p.queue, e)
	p.ports[fmt.Sprint(name, "/", number)] = e
}

// again queues all that is retained, as to a subscriber that is new or has missed
// something.
func (p *publisher) again() {
	for _, k := range slices.Sorted(maps.Keys(p.state)) {
		p.queue = append(p.queue, p.state[k])
	}
	for _, k := range slices.Sorted(maps.Keys(p.ports)) {
		p.queue = append(p.queue, p.ports[k])
	}
	p.queue = append(p.queue, nil)
}

// thing returns what an event is about, and its message.
func thing(event any) (name string, is proto.Message) {
	dpid := func(text string) flow.DPID { sw, _ := flow.ParseDPID(text); return sw }
	switch e := event.(type) {
	case *api.SwitchChanged:
		return fmt.Sprint("switch ", dpid(e.Switch.Dpid)), e.Switch
	case *api.PortRoleChanged:
		return fmt.Sprint("role ", e.Port.At.Flow()), e.Port
	case *api.LinkChanged:
		return fmt.Sprint("link ", LinkKey{e.Link.Src.Flow(), e.Link.Dst.Flow()}), e.Link
	case *api.HostChanged:
		mac, _ := flow.ParseMAC(e.Host.Mac)
		return fmt.Sprint("host ", HostKey{uint16(e.Host.Vlan), mac}), e.Host
	case *api.SegmentChanged:
		return fmt.Sprint("segment ", e.Segment.Vlan), e.Segment
	case *api.NodeChanged:
		return fmt.Sprint("node ", dpid(e.Node.Report.Dpid)), e.Node
	case *api.TunnelPortChanged:
		return fmt.Sprint("tunnel port ", TunnelKey{e.Port.Kind, e.Port.A.Flow(), e.Port.B.Flow()}), e.Port
	case *api.RolesSettled:
		return fmt.Sprint("settled ", dpid(e.Dpid)), e
	case *api.PortChanged:
		return fmt.Sprint("port ", flow.Location{Switch: dpid(e.Port.Dpid), Port: flow.Port(e.Port.Port)}), e.Port
	}
	panic("no such event")
}

// fold is what the last runs of the publishers of each partition say.
func fold(last map[string]*publisher) map[string]string {
	m := map[string]string{}
	for _, p := range last {
		for _, e := range p.state {
			name, of := thing(e)
			m[name] = line(of)
			if sw, ok := e.(*api.SwitchChanged); ok {
				for _, o := range sw.Ports {
					name, of := thing(&api.PortChanged{Port: o})
					m[name] = line(of)
				}
			}
		}
		for _, e := range p.ports {
			name, of := thing(e)
			if delete(m, name); !e.Removed {
				m[name] = line(of)
			}
		}
	}
	return m
}

func line(m proto.Message) string { return strings.ReplaceAll(fmt.Sprint(m), "  ", " ") }

// differing lists what two states have not in common.
func differing(got, want map[string]string) (list []string) {
	for k := range got {
		if got[k] != want[k] {
			list = append(list, fmt.Sprintf("%s: %q, want %q", k, got[k], want[k]))
		}
	}
	for k := range want {
		if got[k] == "" {
			list = append(list, fmt.Sprintf("%s: none, want %q", k, want[k]))
		}
	}
	return list
}

// TestSnapshotIsFold delivers what several runs of the publishers of two partitions
// say, in all orders that the bus allows: each run's events in order, those of
// different runs in any; runs are followed by others, which may be heard first, or
// end while a former run goes on; things move between partitions; retained events
// come again. In the end the snapshot is what the last runs say, and so is what a
// watcher has seen.
func TestSnapshotIsFold(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		names := slices.Sorted(maps.Keys(kinds))
		if rng.IntN(2) == 0 {
			names = []string{"switch", names[rng.IntN(len(names))]} // more of them
		}
		var runs []*publisher
		last := map[string]*publisher{}
		for _, partition := range []string{"", "p1"}[:1+rng.IntN(2)] {
			followed := rng.IntN(3) == 0 // by one that ends before it
			for i := range 1 + rng.IntN(3) {
				p := &publisher{source: Source{partition, uint64(10*i + 1)}, state: map[string]any{}, spoken: map[string]bool{}, ports: map[string]*api.PortChanged{}}
				if followed && i == 0 {
					p.source.Epoch = 99
				}
				for said := range rng.IntN(15) {
					switch rng.IntN(8) {
					case 0:
						p.again()
					case 1, 2:
						p.sayPort(1+rng.IntN(2), 1+rng.IntN(4), rng.IntN(9), rng.IntN(3) == 0)
					default:
						p.say(names[rng.IntN(len(names))], 1+rng.IntN(2), 3*said+rng.IntN(3), rng.IntN(3) == 0) // never the same twice
					}
				}
				runs, last[partition] = append(runs, p), p
			}
			for _, p := range runs {
				if p.source.Partition == partition && p != last[partition] && (p.source.Epoch == 99 || rng.IntN(2) == 0) {
					last[partition].queue = append(last[partition].queue, p.source)
					if p.source.Epoch == 99 { // what was said before counts when it is said again
						clear(last[partition].spoken)
					}
				}
			}
		}
		if last["p1"] != nil { // each thing is one partition's in the end
			for _, kind := range names {
				for key := 1; key <= 2; key++ {
					last[[]string{"", "p1"}[rng.IntN(2)]].say(kind, key, 0, true)
				}
			}
		}
		for _, p := range last {
			p.again()
		}
		want := fold(last)

		b := New()
		b.Read(every)
		seen, mirror := b.Snapshot(), map[string]string{}
		waiting := false
		b.Watch(every, func() { waiting = true })
		look := func() {
			if !waiting {
				return
			}
			waiting = false
			follow(mirror, Change{seen, b.Snapshot()})
			seen = b.Snapshot()
		}
		queues := map[*publisher][]any{}
		for _, p := range runs {
			queues[p] = slices.Clone(p.queue)
		}
		var order []string
		for len(runs) > 0 {
			i := rng.IntN(len(runs))
			p := runs[i]
			if len(queues[p]) == 0 {
				runs = slices.Delete(runs, i, i+1)
				continue
			}
			for range 1 + rng.IntN(2) { // once, or twice
				order = append(order, fmt.Sprint(p.source, ": ", queues[p][0]))
				deliver(b, p.source, queues[p][0])
			}
			queues[p] = queues[p][1:]
			if rng.IntN(4) == 0 {
				look()
			}
		}
		early := text(b.Snapshot())
		for k, is := range early {
			spoken := true
			for _, p := range last {
				spoken = spoken && p.spoken[k]
			}
			if spoken && is != want[k] {
				t.Fatalf("seed %d: before anything is withdrawn, %s is %q, and the last runs have said %q\nafter\n%s", seed, k, is, want[k], strings.Join(order, "\n"))
			}
		}
		for p := range queues { // what only former runs have said is withdrawn
			if last[p.source.Partition] == p {
				continue
			}
			for _, kind := range names {
				for key := 1; key <= 2; key++ {
					b.Apply(p.source, kinds[kind](key, 0, true))
				}
			}
		}
		look()
		if wrong := differing(text(b.Snapshot()), want); wrong != nil {
			t.Fatalf("seed %d: %v\nafter\n%s", seed, wrong, strings.Join(order, "\n"))
		}
		if wrong := differing(mirror, want); wrong != nil {
			t.Fatalf("seed %d: a watcher has %v", seed, wrong)
		}
		if !b.Snapshot().Heard(every) {
			t.Fatalf("seed %d: all has been said, and only %b of %b is heard", seed, b.Snapshot().heard, every)
		}
		for k, list := range b.switches {
			for _, c := range list {
				if c.gone {
					t.Fatalf("seed %d: of switch %v a claim is left, that it is gone", seed, k)
				}
			}
		}
	}
}

func deliver(b *Base, from Source, event any) {
	over, ends := event.(Source)
	if event != nil && !ends {
		b.Apply(from, event)
		return
	}
	for p := Switches; p < end; p <<= 1 {
		if ends {
			b.Over(p, over)
		} else {
			b.Complete(p, from)
		}
	}
	if !ends {
		b.Apply(from, &api.HostsSettled{})
	}
}

// follow brings what a watcher has seen up to date, by what has changed.
func follow(mirror map[string]string, c Change) {
	after := text(c.Is)
	touch := func(kind string, key any) {
		name := fmt.Sprint(kind, " ", key)
		if delete(mirror, name); after[name] != "" {
			mirror[name] = after[name]
		}
	}
	for _, s := range c.Switches() {
		touch("switch", keyOf(s))
		for p := range c.Was.Ports(keyOf(s)) { // they count as long as the switch is connected
			touch("port", p.Key)
		}
		for p := range c.Is.Ports(keyOf(s)) {
			touch("port", p.Key)
		}
	}
	for _, s := range c.Ports() {
		touch("port", keyOf(s))
	}
	for _, s := range c.Roles() {
		touch("role", keyOf(s))
	}
	for _, s := range c.Links() {
		touch("link", keyOf(s))
	}
	for _, s := range c.Hosts() {
		touch("host", keyOf(s))
	}
	for _, s := range c.Segments() {
		touch("segment", keyOf(s))
	}
	for _, s := range c.Nodes() {
		touch("node", keyOf(s))
	}
	for _, s := range c.TunnelPorts() {
		touch("tunnel port", keyOf(s))
	}
	for _, s := range c.Settled() {
		touch("settled", keyOf(s))
	}
}

func keyOf[K comparable, M any](s Step[Fact[K, M]]) K {
	if s.Is != nil {
		return s.Is.Key
	}
	return s.Was.Key
}
