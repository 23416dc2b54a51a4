package oftest

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Network is devices joined by links, with hosts at their edge. A frame that
// leaves a port arrives at the far end before the call returns that caused it.
// All that belongs to a network shares one lock.
type Network struct {
	mu      sync.Mutex // guards all that follows, and all devices
	clock   func() time.Time
	devices map[flow.DPID]*Device
	links   map[flow.Location]*end
	hosts   map[flow.Location]*Host
	pending []arrival
	steps   int
	loops   []Loop
	seed    maphash.Seed
	seen    map[place]int
}

// end is one end of a link.
type end struct {
	far   flow.Location
	muted bool // what leaves here is lost, unnoticed
}

// arrival is a frame about to arrive at a port.
type arrival struct {
	at    flow.Location
	frame []byte
	from  *hop
}

// hop is a place where a frame arrived, and how it came there.
type hop struct {
	place
	depth  int
	before *hop
}

// place is a frame at a port.
type place struct {
	at   flow.Location
	hash uint64
}

// Loop is a frame that came to a port where it had been before, unchanged; or
// one that went on for MaxHops or caused MaxSteps arrivals. It went no further.
type Loop struct {
	Path  []flow.Location // the ports at which it arrived, the last one first seen again
	Frame []byte
}

// String returns the path.
func (l Loop) String() string {
	at := make([]string, len(l.Path))
	for i, p := range l.Path {
		at[i] = p.String()
	}
	return fmt.Sprintf("frame %x went %s", l.Frame[:min(len(l.Frame), 64)], strings.Join(at, ", "))
}

// Bounds that no frame passes.
const (
	MaxHops  = 256
	MaxSteps = 100_000
)

// NewNetwork returns a network without devices. With clock nil, time passes in
// Advance only, starting from 1970; time.Now is the real clock.
func NewNetwork(clock func() time.Time) *Network {
	return &Network{
		clock: clock, devices: map[flow.DPID]*Device{}, links: map[flow.Location]*end{}, hosts: map[flow.Location]*Host{},
		seed: maphash.MakeSeed(), seen: map[place]int{},
	}
}

// Add adds a switch. A second one of the same DPID panics: see NewDevice for a
// double.
func (n *Network) Add(cfg Config) *Device {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.devices[cfg.DPID] != nil {
		panic(fmt.Sprintf("oftest: there is a switch %v", cfg.DPID))
	}
	if n.clock != nil && cfg.Now.IsZero() {
		cfg.Now = n.clock()
	}
	d := &Device{mu: &n.mu, sw: New(cfg), clock: n.clock, net: n, lines: map[int]*line{}}
	n.devices[cfg.DPID] = d
	return d
}

// Device returns a switch, nil if there is none.
func (n *Network) Device(sw flow.DPID) *Device {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.devices[sw]
}

// Advance sets the clocks of all switches and lets happen what is due.
func (n *Network) Advance(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range n.devices {
		d.route(d.sw.Advance(now), nil)
	}
	n.run()
}

// Link joins two ports, which must exist and be free.
func (n *Network) Link(a, b flow.Location) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free(a)
	n.free(b)
	n.links[a], n.links[b] = &end{far: b}, &end{far: a}
}

// Unlink takes the link at a port away: both ports are free afterwards. It is no
// news to the switches; see Cut.
func (n *Network) Unlink(at flow.Location) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.links[at]; l != nil {
		delete(n.links, l.far)
		delete(n.links, at)
	}
}

// free panics unless a port exists and nothing is at it.
func (n *Network) free(at flow.Location) {
	d := n.devices[at.Switch]
	if d == nil || d.sw.ports[at.Port] == nil || n.links[at] != nil || n.hosts[at] != nil {
		panic(fmt.Sprintf("oftest: port %v does not exist or is taken", at))
	}
}

// Cut takes the link at a port down: both ends lose it, and say so.
func (n *Network) Cut(at flow.Location) { n.setLink(at, false) }

// Mend brings the link at a port up again.
func (n *Network) Mend(at flow.Location) { n.setLink(at, true) }

func (n *Network) setLink(at flow.Location, up bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ends := []flow.Location{at}
	if l := n.links[at]; l != nil {
		ends = append(ends, l.far)
	}
	for _, e := range ends {
		if d := n.devices[e.Switch]; d != nil {
			d.route(d.sw.SetLink(e.Port, up), nil)
		}
	}
	n.run()
}

// Mute has the frames that leave a port get lost without anybody noticing;
// Unmute ends it. The other direction of the link is left as it is.
func (n *Network) Mute(at flow.Location) { n.mute(at, true) }

// Unmute ends Mute.
func (n *Network) Unmute(at flow.Location) { n.mute(at, false) }

func (n *Network) mute(at flow.Location, muted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.links[at]; l != nil {
		l.muted = muted
	}
}

// emit takes a frame that leaves a port; the lock is held.
func (n *Network) emit(at flow.Location, frame []byte, from *hop) {
	if h := n.hosts[at]; h != nil {
		h.hear(frame)
		return
	}
	if l := n.links[at]; l != nil && !l.muted {
		n.pending = append(n.pending, arrival{l.far, frame, from})
	}
}

// run moves frames until none is on its way; the lock is held.
func (n *Network) run() {
	for n.steps = 0; len(n.pending) > 0; n.steps++ {
		a := n.pending[0]
		n.pending = n.pending[1:]
		h := &hop{place: place{a.at, maphash.Bytes(n.seed, a.frame)}, before: a.from}
		n.seen[h.place]++
		if a.from != nil {
			h.depth = a.from.depth + 1
		}
		if n.looped(h) {
			n.loops = append(n.loops, Loop{h.path(), a.frame})
			continue
		}
		if d := n.devices[a.at.Switch]; d != nil {
			if n.clock != nil {
				d.route(d.sw.Advance(n.clock()), nil)
			}
			d.route(d.sw.Receive(a.at.Port, a.frame), h)
		}
	}
	n.pending = nil
}

// looped reports whether a frame that arrives must go no further.
func (n *Network) looped(h *hop) bool {
	if h.depth > MaxHops || n.steps > MaxSteps {
		return true
	}
	for b := h.before; b != nil; b = b.before {
		if b.place == h.place {
			return true
		}
	}
	return false
}

func (h *hop) path() (list []flow.Location) {
	for ; h != nil; h = h.before {
		list = append(list, h.at)
	}
	slices.Reverse(list)
	return list
}

// Loops returns the loops found since the network was made, or since Forget.
func (n *Network) Loops() []Loop {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.loops)
}

// Busiest returns the port at which one and the same frame has arrived most
// often, and how often. Also a loop through the controller, of which no single
// frame's path tells, makes this grow.
func (n *Network) Busiest() (at flow.Location, times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for p, t := range n.seen {
		if t > times {
			at, times = p.at, t
		}
	}
	return at, times
}

// Forget forgets loops, counts of arrivals, and what hosts have received.
func (n *Network) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loops = nil
	clear(n.seen)
	for _, h := range n.hosts {
		h.received = nil
	}
}
