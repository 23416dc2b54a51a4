package oam

import (
	"slices"
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// A Lane is one direction of a circuit, from one end to another.
type Lane struct {
	From, To flow.DPID
	Group    uint32    // of the tunnel, at From
	Out      flow.Port // any link port of From; by it probes to From itself come back
	Label    uint32    // of the circuit at To
}

// Config is how probes are sent.
type Config struct {
	Rate     int   // per second, all probes together
	Interval int64 // between two probes of a lane, ns; longer if there are many lanes
	Timeout  int64 // after which a probe is lost, ns
}

// A Prober probes the lanes that it is given, evenly, and measures what comes back.
//
// What it measures is the time from the controller to the first switch, through the
// circuit, and back from the last. It takes off half of what a probe takes to each of
// these switches and straight back: a packet-out whose only action is the controller,
// which is handled as those of the circuit are. The least of the last turns counts, so
// that a load on the controller does not hide a delay. What is left over is exact to
// half of the difference between the ways to a switch and back from it, and of what
// the turns of both vary.
type Prober struct {
	mu     sync.Mutex // guards the following
	cfg    Config
	signer *signer
	lanes  map[uint32]*lane
	order  []*lane // those that are probed, in turn
	at     int     // the next of them
	turns  map[flow.DPID]*turn
	round  []*turn // in turn
	turnAt int
	owed   float64 // probes that may be sent now
	last   int64   // when owed was brought up to date
	lastID uint32
	counts Counts
	frame  []byte
}

// Counts are counts of probes.
type Counts struct{ Sent, Returned, Lost, Late, Forged uint64 }

// lane is a lane and its probes.
type lane struct {
	Lane
	id     uint32
	index  int // in order
	window window
	pings  []*Ping
}

// turnsKept is of how many turns of a switch the least counts.
const turnsKept = 16

// turn is the way to a switch and back.
type turn struct {
	sw       flow.DPID
	out      flow.Port
	users    int
	index    int
	id       uint32
	window   window
	answered int64 // when the last was sent that has come back
}

// NewProber returns a prober without lanes. The key signs probes.
func NewProber(cfg Config, key []byte) *Prober {
	return &Prober{cfg: cfg, signer: newSigner(key), lanes: map[uint32]*lane{}, turns: map[flow.DPID]*turn{}}
}

// Add has a lane probed, and returns its number.
func (p *Prober) Add(l Lane) (id uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastID++
	n := &lane{Lane: l, id: p.lastID, index: len(p.order)}
	n.window.clear()
	p.lanes[n.id] = n
	p.order = append(p.order, n)
	p.use(l.From, l.Out)
	p.use(l.To, 0)
	return n.id
}

// use counts a lane at a switch. It is called with mu held.
func (p *Prober) use(sw flow.DPID, out flow.Port) {
	t := p.turns[sw]
	if t == nil {
		p.lastID++
		t = &turn{sw: sw, id: p.lastID, index: len(p.round)}
		t.window.clear()
		p.turns[sw] = t
		p.round = append(p.round, t)
	}
	t.users++
	if out != 0 {
		t.out = out
	}
}

// Remove has a lane probed no more.
func (p *Prober) Remove(id uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.lanes[id]
	if n == nil {
		return
	}
	delete(p.lanes, id)
	end := p.order[len(p.order)-1]
	p.order[n.index], end.index = end, n.index
	p.order = p.order[:len(p.order)-1]
	for _, sw := range []flow.DPID{n.From, n.To} {
		t := p.turns[sw]
		if t.users--; t.users == 0 {
			delete(p.turns, sw)
			end := p.round[len(p.round)-1]
			p.round[t.index], end.index = end, t.index
			p.round = p.round[:len(p.round)-1]
		}
	}
	for _, g := range n.pings {
		g.end()
	}
}

// Away forgets what is under way at a switch, whose connection has ended: nothing
// can be said of probes that it was sent.
func (p *Prober) Away(sw flow.DPID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.order {
		if n.From == sw || n.To == sw {
			n.window.expire(1<<62, 0)
		}
	}
}

// Every returns the time between two probes of a lane: the interval, or more if
// there are so many lanes that they would take more than the rate.
func (p *Prober) Every() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.every()
}

func (p *Prober) every() int64 {
	n := int64(len(p.order) + len(p.round))
	return max(p.cfg.Interval, n*1e9/int64(p.cfg.Rate))
}

// burst bounds how many probes are sent at once, in seconds of the rate.
const burst = 0.05

// Due appends to d the probes that are due now. Their frames are in one piece of
// memory, which nobody else uses.
func (p *Prober) Due(now int64, d *flow.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lanes, turns := len(p.order), len(p.round)
	all := lanes + turns
	if p.last == 0 || all == 0 {
		p.last = now
	}
	perSecond := min(float64(p.cfg.Rate), float64(all)*1e9/float64(p.every()))
	p.owed = min(p.owed+float64(now-p.last)/1e9*perSecond, max(2, perSecond*burst))
	p.last = now
	p.frame = nil
	if p.owed >= 1 {
		p.frame = make([]byte, 0, int(p.owed)*FrameMin)
	}
	for n := 0; p.owed >= 1 && n < all; n++ {
		p.owed--
		// Switches and lanes take turns in proportion to their numbers.
		if (p.at+p.turnAt)%all < turns {
			p.turnAt++
			p.sendTurn(now, d, p.round[p.turnAt%turns])
			continue
		}
		p.at++
		if lanes > 0 {
			p.sendWay(now, d, p.order[p.at%lanes])
		}
	}
}

func (p *Prober) sendWay(now int64, d *flow.Decision, n *lane) {
	p.expire(now, n)
	seq := n.window.send(now)
	p.out(d, n.From, flow.PortController, flow.ToGroup(n.Group), n.Label, probe{kindWay, n.id, seq, now}, FrameMin)
}

func (p *Prober) sendTurn(now int64, d *flow.Decision, t *turn) {
	t.window.expire(now-p.cfg.Timeout, 0)
	seq := t.window.send(now)
	in := t.out
	if in == 0 {
		in = flow.PortController
	}
	p.out(d, t.sw, in, flow.Output(flow.PortController), 0, probe{kindTurn, t.id, seq, now}, FrameMin)
}

// out appends a packet-out with a probe.
func (p *Prober) out(d *flow.Decision, sw flow.DPID, in flow.Port, act flow.Action, label uint32, say probe, length int) {
	start := len(p.frame)
	p.frame = p.signer.appendFrame(p.frame, label, say, length)
	o := flow.PacketOut{BufferID: flow.BufferNone, InPort: in, Data: p.frame[start:len(p.frame):len(p.frame)]}
	o.Actions = d.Actions(act)
	d.PacketOut(sw, o)
	p.counts.Sent++
}

// expire gives up the probes of a lane that have not come back in time. One is lost
// if both switches have answered one sent after it, else nothing can be said. It is
// called with mu held.
func (p *Prober) expire(now int64, n *lane) {
	p.counts.Lost += n.window.expire(now-p.cfg.Timeout, min(p.turns[n.From].answered, p.turns[n.To].answered))
}

// Packet handles a packet-in that came at a time; it returns false if it is no
// probe.
func (p *Prober) Packet(now int64, in *flow.PacketIn) bool {
	if in.Key.EthType != flow.EthTypeMPLS || !isProbe(in.Data) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	say, ok := p.signer.read(in.Data)
	if !ok {
		p.counts.Forged++
		return true
	}
	switch say.kind {
	case kindTurn:
		if t := p.turns[in.Switch]; t != nil && t.id == say.lane && t.window.arrive(say.seq, say.sent, now-say.sent) {
			t.answered = max(t.answered, say.sent)
			p.counts.Returned++
			return true
		}
	case kindWay, kindPing:
		n := p.lanes[say.lane]
		if n == nil || n.To != in.Switch {
			break
		}
		delay := max(0, now-say.sent-p.control(n))
		if say.kind == kindPing {
			ok = slices.ContainsFunc(n.pings, func(g *Ping) bool { return g.arrive(say.seq, say.sent, delay) })
		} else {
			ok = n.window.arrive(say.seq, say.sent, delay)
		}
		if ok {
			p.counts.Returned++
			return true
		}
	}
	p.counts.Late++
	return true
}

// control returns what a probe of a lane takes to its first switch and from its
// last, ns. It is called with mu held.
func (p *Prober) control(n *lane) int64 {
	return (p.turns[n.From].least() + p.turns[n.To].least()) / 2
}

// least returns the least of the last turns, ns.
func (t *turn) least() int64 {
	least := int64(-1)
	for seq := t.window.next - turnsKept; seq != t.window.next; seq++ {
		if d := t.window.delay[seq%Window]; d >= 0 && (least < 0 || int64(d) < least) {
			least = int64(d)
		}
	}
	return max(0, least) * 1000
}

// Measure returns what the last n probes of a lane say, at a time.
func (p *Prober) Measure(now int64, id uint32, n int) (m Measure, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[id]
	if l == nil {
		return m, false
	}
	p.expire(now, l)
	return l.window.last(n), true
}

// Control returns how long a probe takes to a switch and back, the least of the
// last, ns; 0 is not known.
func (p *Prober) Control(sw flow.DPID) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.turns[sw]; t != nil {
		return t.least()
	}
	return 0
}

// Counts returns the counts.
func (p *Prober) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}
