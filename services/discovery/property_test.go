package discovery

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// mirror follows the events as a subscriber does.
type mirror struct {
	links map[[2]flow.Location]string
	costs map[[2]flow.Location]uint32
	roles map[flow.Location]string
	next  int
}

// follow takes the events since the last call; each must be a change.
func (m *mirror) follow(w *world) error {
	for ; m.next < len(w.events); m.next++ {
		e := w.events[m.next]
		if l := e.link; l != nil {
			key := [2]flow.Location{l.Link.Src.Flow(), l.Link.Dst.Flow()}
			old, listed := m.links[key]
			switch {
			case l.Removed && !listed:
				return fmt.Errorf("%v removed, but was not there", key)
			case l.Removed:
				delete(m.links, key)
			case old == l.Link.State && m.costs[key] == l.Link.Weight:
				return fmt.Errorf("%v is %s again", key, old)
			default:
				m.links[key], m.costs[key] = l.Link.State, l.Link.Weight
			}
		}
		if p := e.role; p != nil {
			at := p.Port.At.Flow()
			old, listed := m.roles[at]
			switch {
			case p.Gone && !listed:
				return fmt.Errorf("port %v is no more, but was not there", at)
			case p.Gone:
				delete(m.roles, at)
			case old == p.Port.Role:
				return fmt.Errorf("port %v is %s again", at, old)
			default:
				m.roles[at] = p.Port.Role
			}
		}
	}
	return nil
}

// check compares what a subscriber knows with what is listed, and what is
// listed with what must hold at any time.
func (m *mirror) check(w *world) error {
	list := w.topo.listLinks(w.now)
	if len(list) != len(m.links) {
		return fmt.Errorf("%d links listed, %d known from events", len(list), len(m.links))
	}
	outs, ins := map[flow.Location]bool{}, map[flow.Location]bool{}
	for _, l := range list {
		src, dst := l.Src.Flow(), l.Dst.Flow()
		if m.links[[2]flow.Location{src, dst}] != l.State {
			return fmt.Errorf("%v -> %v is %s, known as %q", src, dst, l.State, m.links[[2]flow.Location{src, dst}])
		}
		if outs[src] || ins[dst] {
			return fmt.Errorf("%v -> %v is not the only link of its ports", src, dst)
		}
		outs[src], ins[dst] = true, true
		if back := m.links[[2]flow.Location{dst, src}]; l.State != "one_way" && l.State != back || l.State == "one_way" && back != "" {
			return fmt.Errorf("%v -> %v is %s, the other direction %q", src, dst, l.State, back)
		}
		for _, end := range []flow.Location{src, dst} {
			p := w.topo.at(end)
			if !p.up || !w.topo.switches[end.Switch].connected || p.role != flow.RoleLink {
				return fmt.Errorf("%v -> %v is %s, but port %v is up=%v and %v", src, dst, l.State, end, p.up, p.role)
			}
		}
	}
	for _, p := range w.topo.listPorts(w.now) {
		known := m.roles[p.At.Flow()]
		if known == "" {
			known = "unsettled"
		}
		if known != p.Role {
			return fmt.Errorf("port %v is %s, known as %s", p.At, p.Role, known)
		}
	}
	return nil
}

// TestLinkProperties does random things to a random network and checks after
// each that events and lists agree and that links make sense; and, when all is
// quiet, that the links are the cables.
func TestLinkProperties(t *testing.T) {
	const switches, ports = 5, 4
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		dampen := seed%2 == 0
		w := newWorld(t, func(c *Config) {
			if !dampen {
				c.Flap.Downs = 1000
			}
			if seed%3 == 0 {
				c.Liveness.Interval = 80 * time.Millisecond
			}
		})
		m := &mirror{links: map[[2]flow.Location]string{}, costs: map[[2]flow.Location]uint32{}, roles: map[flow.Location]string{}}
		far := map[flow.Location]flow.Location{} // the cables
		someone := func() flow.Location { return at(flow.DPID(1+rnd.IntN(switches)), flow.Port(1+rnd.IntN(ports))) }
		unplug := func(l flow.Location) {
			if o, ok := far[l]; ok {
				delete(far, l)
				delete(far, o)
				w.cut(l, o)
			}
		}
		for id := range flow.DPID(switches) {
			w.switches(ports, id+1)
		}
		for step := range 150 {
			l := someone()
			var did string
			switch rnd.IntN(8) {
			case 0:
				did = "port down"
				w.port(l, false)
			case 1, 2:
				did = "port up"
				w.port(l, true)
			case 3:
				did = "switch gone"
				w.topo.disconnect(w.now, l.Switch)
			case 4:
				did = "switch connects"
				w.switches(ports, l.Switch)
			case 5:
				did = "cable"
				if o := someone(); o.Switch != l.Switch {
					unplug(l)
					unplug(o)
					w.cable(l, o)
					far[l], far[o] = o, l
				}
			case 6:
				did = "one direction cut"
				delete(w.wires, l)
			case 7:
				did = "unplug"
				unplug(l)
			}
			w.take()
			w.run(time.Duration(rnd.Int64N(int64(time.Second) * []int64{1, 1, 5}[rnd.IntN(3)])))
			err := m.follow(w)
			if err == nil {
				err = m.check(w)
			}
			if err != nil {
				t.Fatalf("seed %d, step %d, %s at %v: %v", seed, step, did, l, err)
			}
		}
		if dampen {
			continue
		}
		for id := range flow.DPID(switches) {
			w.switches(ports, id+1)
		}
		for a, b := range far {
			w.cable(a, b)
		}
		w.run(15 * time.Second)
		links := map[[2]flow.Location]bool{}
		for _, l := range w.topo.listLinks(w.now) {
			links[[2]flow.Location{l.Src.Flow(), l.Dst.Flow()}] = true
			if l.State != "up" || far[l.Src.Flow()] != l.Dst.Flow() {
				t.Errorf("seed %d: link %v, but no such cable", seed, l)
			}
		}
		if len(links) != len(far) {
			t.Errorf("seed %d: %d links of %d", seed, len(links), len(far))
		}
	}
}
