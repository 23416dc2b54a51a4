package chain

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// A function may be dead though its ports are up: its program has ended, its bridge is
// down. So frames are sent through each copy, in both directions, and entries of its ports
// bring back what it sends on. Some copies never send one on, such as routers, which know
// only IP: these are judged by their ports alone.
//
// What a probe takes to the switch and back says nothing of the function. So the switches
// of copies are asked in every round to send a frame straight back. The probes of a round
// count as lost once the frames of a later one are back: they took the same ways but for
// the function.
const (
	probesLost  = 3  // probes lost one after the other with which a copy is dead
	probesBack  = 3  // probes that come back one after the other with which it is alive again
	probesLater = 1  // how many rounds later the frame is that came straight back
	probesRare  = 16 // of how many rounds those have one that have sent on none yet
	probeTick   = time.Second
)

// The kinds of frames.
const (
	throughFunction = iota
	straightBack
	pinged // of a ping, whichever way
)

// A frame of ours has after its EtherType, in network order, its kind (1), the direction
// (1), the number of the copy, or of a ping's way (4), that of the round, or in its way (4), and the first half of the
// HMAC-SHA256 of all of these.
const (
	probeSigned = 1 + 1 + 4 + 4
	probeLen    = probeSigned + sha256.Size/2
	etherLen    = 14
)

// prober probes the copies of functions. The guard of the store guards it.
type prober struct {
	guard   *object.Guard
	cfg     *Config
	of      probed
	key     []byte // of this run
	kept    *object.Store[*verdict]
	arrived chan struct{} // notified when a frame came straight back
	changed chan struct{} // notified when what is kept is not what is known

	lanes  map[copyOf]*lane
	byID   map[uint32]*lane
	lastID uint32
	round  uint32
	back   map[flow.DPID]uint32 // the last round whose frame came straight back, by switch
	pings  map[uint32]*ping     // by the identifiers of their ways
}

// probed is what a prober knows of the chains. Its functions are called with the guard held.
type probed struct {
	net       func() nib.Snapshot
	copies    func() []copyOf // of all functions, in order
	reached   func(copyOf) bool
	recompute func() // what switches are to have
}

// verdict is what is kept of a copy that has sent on probes.
type verdict struct {
	copy copyOf
	dead bool
}

// lane is a copy that is probed.
type lane struct {
	verdict
	id       uint32
	answered bool // it has sent on probes in both directions
	alive    bool // by ports and probes, and since when
	since    time.Time
	ways     [2]probedWay // by direction
}

// probedWay is one direction through a copy, by the rounds in which it was probed.
type probedWay struct {
	first  uint32 // since it can be probed; 0: it cannot
	last   uint32 // the last that came back
	inARow uint32 // how many came back one after the other
}

func newProber(guard *object.Guard, cfg *Config, of probed, kept object.Bucket, bad func(name string, err error)) *prober {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	p := &prober{
		guard: guard, cfg: cfg, of: of, key: key, arrived: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		lanes: map[copyOf]*lane{}, byID: map[uint32]*lane{}, back: map[flow.DPID]uint32{}, pings: map[uint32]*ping{},
	}
	p.kept = object.New(guard, kept, object.Kind[*verdict]{
		What: "probe", Many: "probes", Most: func() int { return numberMax * functionsMax },
		Name: func(v *verdict) string { return v.copy.name() },
		Format: object.Messages(func(m *api.ChainProbe) (*verdict, error) {
			return &verdict{copyOf{m.GetIn().Flow(), m.GetOut().Flow()}, m.GetDead()}, nil
		}, func(v *verdict) *api.ChainProbe {
			return &api.ChainProbe{In: api.NewLocation(v.copy.in), Out: api.NewLocation(v.copy.out), Dead: v.dead}
		}),
		Bad: bad,
	})
	return p
}

func (c copyOf) name() string { return nameOf(c.in) + "-" + nameOf(c.out) }

// laneOf returns that of a copy, made by what is kept if there is none yet. It is called
// with the guard held.
func (p *prober) laneOf(c copyOf) *lane {
	l := p.lanes[c]
	if l == nil {
		p.lastID++
		l = &lane{verdict: verdict{copy: c}, id: p.lastID, since: time.Now()}
		if v := p.kept.Get(c.name()); v != nil {
			l.verdict, l.answered = *v, true
		}
		l.alive = !l.dead && p.of.reached(c)
		p.lanes[c], p.byID[l.id] = l, l
	}
	return l
}

// dead reports whether a copy is dead by what probes say. It is called with the guard held.
func (p *prober) dead(c copyOf) bool { return p.cfg.ProbeInterval > 0 && p.laneOf(c).dead }

// status returns by what it is known whether a copy is alive, and since when, which is empty
// if there are no probes. It is called with the guard held.
func (p *prober) status(c copyOf) (by, since string) {
	if p.cfg.ProbeInterval == 0 {
		return "port", ""
	}
	l := p.laneOf(c)
	p.note(l)
	if by = "port"; l.answered && p.of.reached(c) {
		by = "probe"
	}
	return by, l.since.UTC().Format(time.RFC3339)
}

// note notes since when a copy is alive or not.
func (p *prober) note(l *lane) {
	if alive := !l.dead && p.of.reached(l.copy); alive != l.alive {
		l.alive, l.since = alive, time.Now()
	}
}

// run probes until ctx ends.
func (p *prober) run(ctx context.Context, send func(context.Context, *flow.Decision) error) {
	every := p.cfg.ProbeInterval
	if every == 0 {
		return
	}
	next := time.NewTimer(every)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.arrived:
		case <-next.C:
			d := &flow.Decision{}
			p.probe(d)
			next.Reset(max(every, time.Duration(len(d.Outs))*time.Second/time.Duration(p.cfg.ProbeRate)))
			if len(d.Outs) > 0 {
				_ = send(ctx, d) // a probe that is not sent says nothing: no frame comes straight back
			}
		}
		p.judge()
	}
}

// probe appends the frames of the next round.
func (p *prober) probe(d *flow.Decision) {
	p.guard.Lock()
	defer p.guard.Unlock()
	p.round++
	there, ends := map[copyOf]bool{}, map[flow.DPID]flow.Port{}
	for _, c := range p.of.copies() {
		there[c] = true
		l := p.laneOf(c)
		p.note(l)
		p.through(d, l, ends)
	}
	for c, l := range p.lanes {
		if !there[c] {
			delete(p.lanes, c)
			delete(p.byID, l.id)
			object.Notify(p.changed)
		}
	}
	for _, sw := range slices.Sorted(maps.Keys(ends)) {
		p.out(d, sw, ends[sw], flow.PortController, straightBack, forward, 0, p.round)
	}
}

// through appends the probes of a copy, and notes their switches, each
// with one of its ports.
func (p *prober) through(d *flow.Decision, l *lane, ends map[flow.DPID]flow.Port) {
	net := p.of.net()
	for _, at := range l.copy.ports() {
		connected, port := net.Connected(at.Switch) != nil, net.Port(at)
		if connected && isUp(port) {
			continue
		}
		l.ways = [2]probedWay{}
		if connected && port != nil && l.answered && !l.dead {
			p.found(l, true) // it is in use again when probes come through
		}
		return
	}
	if !l.answered && (p.round+l.id)%probesRare != 0 {
		return
	}
	for _, to := range directions {
		w := &l.ways[to]
		w.first = cmp.Or(w.first, p.round)
		at := l.copy.enters(to)
		p.out(d, at.Switch, flow.PortController, at.Port, throughFunction, to, l.id, p.round)
		ends[at.Switch] = at.Port
	}
}

// out appends a frame of ours that goes to a port of a switch as if it came in by another.
func (p *prober) out(d *flow.Decision, sw flow.DPID, in, out flow.Port, kind byte, to direction, id, number uint32) {
	side := uint8(to)
	b := packet.AppendEthernet(nil, packet.Ether{Dst: flow.ProbeMAC(1 - side), Src: flow.ProbeMAC(side)}, flow.EthTypeProbe)
	start := len(b)
	b = append(b, kind, side)
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint32(b, number)
	b = packet.Pad(append(b, p.sign(b[start:])...))
	d.PacketOut(sw, flow.PacketOut{BufferID: flow.BufferNone, InPort: in, Data: b, Actions: d.Actions(flow.Output(out))})
}

func (p *prober) sign(signed []byte) []byte {
	h := hmac.New(sha256.New, p.key)
	h.Write(signed)
	return h.Sum(nil)[:sha256.Size/2]
}

// returned takes what has come back, unless it is forged.
func (p *prober) returned(e *api.ProbeReturned) {
	if len(e.GetData()) < etherLen+probeLen {
		return
	}
	at, body := e.GetAt().Flow(), e.Data[etherLen:]
	if !hmac.Equal(body[probeSigned:probeLen], p.sign(body[:probeSigned])) {
		return
	}
	to, id, round := direction(body[1]), binary.BigEndian.Uint32(body[2:]), binary.BigEndian.Uint32(body[6:])
	p.guard.Lock()
	defer p.guard.Unlock()
	if body[0] == pinged {
		p.answered(id, round, at)
		return
	}
	if body[0] == straightBack {
		if round > p.back[at.Switch] {
			p.back[at.Switch] = round
			object.Notify(p.arrived)
		}
		return
	}
	l := p.byID[id]
	if l == nil || l.copy.enters(1-to) != at {
		return
	}
	if w := &l.ways[to]; w.first != 0 && round > w.last {
		if w.inARow++; l.answered && round != w.last+1 {
			w.inARow = 1
		}
		w.last = round
	}
}

// judge finds copies that have died or are alive again.
func (p *prober) judge() {
	p.guard.Lock()
	defer p.guard.Unlock()
	for _, l := range p.lanes {
		least := min(l.ways[forward].inARow, l.ways[back].inARow)
		switch {
		case !l.answered && least > 0:
			l.answered = true
			for to := range l.ways {
				l.ways[to] = probedWay{first: p.round + 1, last: p.round}
			}
			object.Notify(p.changed)
		case !l.answered:
		case l.dead && least >= probesBack && !p.silent(l):
			p.found(l, false)
		case !l.dead && p.silent(l):
			p.found(l, true)
		}
	}
}

// silent reports whether the last probes of a copy are lost, in one direction at least.
func (p *prober) silent(l *lane) bool {
	for _, to := range directions {
		w, came := l.ways[to], min(p.back[l.copy.in.Switch], p.back[l.copy.out.Switch])
		if w.first != 0 && came >= max(w.last+1, w.first)+probesLost-1+probesLater {
			return true
		}
	}
	return false
}

// found notes whether a copy is dead, and has switches do what follows from that.
func (p *prober) found(l *lane, dead bool) {
	l.dead = dead
	p.note(l)
	for to := range l.ways {
		l.ways[to].inARow = 0
	}
	p.of.recompute()
	object.Notify(p.changed)
}

// retry is after how long what could not be stored is tried again.
const retry = time.Second

// keep stores what is known, as it changes, until ctx ends.
func (p *prober) keep(ctx context.Context, damaged func() bool) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-again:
		}
		again = nil
		if err := p.store(ctx, damaged()); err != nil && ctx.Err() == nil {
			again = time.After(retry)
		}
	}
}

// store stores what differs from what is kept. Of copies that no chain has nothing is kept,
// unless chains may be missing.
func (p *prober) store(ctx context.Context, damaged bool) error {
	var put []verdict
	var gone []string
	p.guard.Lock()
	for _, l := range p.lanes {
		if v := p.kept.Get(l.copy.name()); l.answered && (v == nil || *v != l.verdict) {
			put = append(put, l.verdict)
		}
	}
	there := p.of.copies()
	for v := range p.kept.All() {
		if !damaged && !slices.Contains(there, v.copy) {
			gone = append(gone, v.copy.name())
		}
	}
	p.guard.Unlock()
	slices.SortFunc(put, func(a, b verdict) int { return cmp.Compare(a.copy.name(), b.copy.name()) })
	slices.Sort(gone)
	var failed []error
	for _, v := range put {
		_, _, err := p.kept.Change(ctx, v.copy.name(), func(*verdict) (*verdict, error) { return &v, nil })
		failed = append(failed, err)
	}
	for _, name := range gone {
		_, err := p.kept.Remove(ctx, name)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
