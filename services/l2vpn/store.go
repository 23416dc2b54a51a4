package l2vpn

import (
	"cmp"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/services/l2vpn/cfm"
)

// store is the circuits and what is known of the network.
type store struct {
	cfg     *Config
	now     func() time.Time
	declare func(sw flow.DPID, pieces ...string) // declares pieces of a switch anew
	kick    func()                               // has tunnels seen to
	news    func()                               // has states published
	reached object.Limits                        // of the configuration
	tight   func()                               // has circuits seen to for which a tunnel has no room

	mu       object.Guard // guards the following
	circuits *object.Store[*circuit]
	status   map[string]*status
	at       map[flow.DPID]map[string]bool // the circuits of a switch
	taken    takenPorts
	sinks    map[flow.DPID]map[flow.Port]map[string]bool // where copies go, and of whose frames
	net      network
	tunnels  tunnelTable
	tails    map[tail]string // the vpls of a label of an end
	learnt   map[string]bool // vpls whose entries change
	alloc    allocator
	counters counterTable
	version  uint64 // counts changes of what records returns, but those that counters counts
	macs     uint64 // counts changes of what keptMACs returns
	changes  circuitChanges
	reserved *reservedPorts
	timed    map[string]bool // circuits that begin or end

	maintained map[string]bool // circuits with maintenance end points

	broken    map[string]time.Time // circuits of which a bound is broken, and since when
	detours   map[string]bool      // circuits that avoid links
	unsettled map[string]bool      // circuits whose switches have not confirmed a change
}

// returnTime is how long after its start the service waits for switches that have not
// connected. Nobody says which will: a switch that is up tries again within eight seconds, and
// one that is not says nothing.
const returnTime = 15 * time.Second

// status is what is done about a circuit.
type status struct {
	circuitCounters
	confirmations
	phase   phase
	looped  bool // an end sends back what comes
	state   string
	reason  string
	since   time.Time
	history []*api.CircuitState // the last one first

	measured *measured  // by probes; nil if there are none
	recalled bool       // the state is that of an earlier run
	served   bool       // it has been up
	lan      *switching // of a vpls; else nil
	devices  devices    // of payload ip; else nil
	ring     string     // why it is in a loop of circuits; empty: it is in none
	changed  time.Time  // when it or its tunnels' groups changed last
	detour   string     // what is said of moving it, where a bound is broken
	moves    int        // how often it has been moved for that
	hold     time.Time  // it is not moved before
	besides  besides    // of its ends

	meps       map[end]*cfm.MEP
	defect     string            // what these lack; empty: nothing
	neighbours map[end]neighbour // that the controller has heard by LLDP
}

func newStore(cfg *Config, bucket object.Bucket, now func() time.Time, bad func(name string, err error)) *store {
	b := &store{cfg: cfg, now: now, declare: func(flow.DPID, ...string) {}, kick: func() {}, news: func() {}, tight: func() {},
		status: map[string]*status{}, at: map[flow.DPID]map[string]bool{}, taken: takenPorts{}, sinks: map[flow.DPID]map[flow.Port]map[string]bool{},
		tunnels: newTunnelTable(), changes: circuitChanges{}, reserved: newReservedPorts(), counters: newCounterTable(),
		net: newNetwork(), tails: map[tail]string{}, learnt: map[string]bool{},
		timed: map[string]bool{}, maintained: map[string]bool{}, broken: map[string]time.Time{}, detours: map[string]bool{}, unsettled: map[string]bool{},
		alloc: newAllocator(cfg)}
	b.circuits = object.New(&b.mu, bucket, object.Kind[*circuit]{
		What: "circuit", Many: "circuits", Most: func() int { return cfg.Circuits }, Raise: "l2vpn.circuits",
		Name:    (*circuit).GetName,
		Format:  object.Messages(parse, (*circuit).message),
		Changed: b.changed, Bad: bad,
	})
	return b
}

// changed follows a change of a circuit. It is called with mu held.
func (b *store) changed(old, now *circuit) {
	var had []*api.Tunnel
	if old != nil {
		was := b.status[old.Name]
		b.redeclare(was)
		if was.lan != nil {
			b.indexTrees(was, false)
		}
		had = b.tunnels.leave(old)
		b.index(old, false)
		b.reserved.add(old, -1)
	}
	if now == nil {
		b.changes.set(b.status[old.Name].message(b.now(), &b.net, &b.tunnels), true)
		b.counters.drop(&b.status[old.Name].circuitCounters)
		delete(b.status, old.Name)
		delete(b.timed, old.Name)
		delete(b.maintained, old.Name)
		delete(b.broken, old.Name)
		delete(b.detours, old.Name)
		b.version++
		b.macs++
		b.kick()
		b.news()
		return
	}
	s := b.status[now.Name]
	if s == nil {
		s = &status{confirmations: newConfirmations(), circuitCounters: circuitCounters{seen: map[counter]amount{}}}
		b.status[now.Name] = s
	}
	s.circuit, s.before, s.phase, s.devices = now, old, now.phaseAt(b.now()), s.devices.keep(now)
	maintain(b, s)
	s.outlive()
	s.record = ""
	s.looped = now.loopsAt(b.now())
	if delete(b.timed, now.Name); now.From != "" || now.Until != "" || len(now.Loops) > 0 {
		b.timed[now.Name] = true
	}
	s.version++
	s.changed = b.now()
	if delete(b.detours, now.Name); len(now.Avoids) > 0 {
		b.detours[now.Name] = true
	}
	b.counters.of[now.Id] = &s.circuitCounters
	b.alloc.lastID = max(b.alloc.lastID, now.Id)
	b.index(now, true)
	b.reserved.add(now, 1)
	b.news()
	b.tunnels.stay(now, old, had)
	if now.Type == vpls {
		most, _ := b.cfg.limits(now)
		if s.lan == nil {
			s.lan = &switching{lan: newLAN(most, b.cfg.MACAge)}
			s.lan.entered = now.arcs()
		}
		s.lan.most = most
		s.lan.full = func(at end, when time.Time) {
			b.reached.ReachAt(when.UnixNano(), "l2vpn.macs", s.lan.most, at.at)
		}
		if s.lan.keep(now.ends) {
			s.lan.kept = nil
		}
		b.macs++
		b.indexTrees(s, true)
	} else {
		s.lan = nil
	}
	b.redeclare(s)
	b.assess(s)
	b.kick()
}

// networkChanged follows a change of the network.
func (b *store) networkChanged(c nib.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net.Snapshot = c.Is
	for _, s := range c.Switches() {
		b.switchChanged(s)
	}
	for _, s := range c.Ports() {
		at := cmp.Or(s.Is, s.Was).Key
		if s.Was != nil || c.Was.Switch(at.Switch) == c.Is.Switch(at.Switch) { // else its switch has just come, with its ports
			b.reassess(at)
		}
	}
	for _, s := range c.Roles() {
		b.reassess(cmp.Or(s.Is, s.Was).Key)
	}
	for _, s := range c.Links() {
		b.net.updateLink(s)
	}
	for _, s := range c.Nodes() {
		if b.net.updateMTUs(s) {
			for _, s := range b.status {
				b.assess(s)
			}
		}
	}
}

// switchChanged follows a switch. It is called with mu held.
func (b *store) switchChanged(s nib.Step[nib.Switch]) {
	sw := cmp.Or(s.Is, s.Was).Key
	same := s.Was != nil && s.Is != nil && !nib.Anew(s) && s.Is.Is.Switch.Connected && s.Was.Is.Switch.Since == s.Is.Is.Switch.Since // of the same session
	for name := range b.at[sw] {
		s := b.status[name]
		if !same {
			s.forget(sw)
		}
		b.assess(s)
	}
}

// reassess assesses the circuits at a port. It is called with mu held.
func (b *store) reassess(at flow.Location) {
	port := b.net.portOf(at)
	down := port != nil && !port.Up && b.net.Info(at.Switch).GetConnected()
	for _, names := range b.taken[at.Switch][at.Port] {
		for name := range names {
			if down {
				clear(b.status[name].neighbours)
			}
			if down && b.status[name].forgetDevices(at) {
				b.learnt[name] = true
				b.version++
			}
			if s := b.status[name]; s.lan != nil && b.net.Info(at.Switch).GetConnected() && b.net.unusable(at) != "" { // what a switch that is away has, it keeps
				for _, e := range s.circuit.ends {
					if e.at == at && s.lan.forget(e) {
						b.learnt[name] = true
					}
				}
			}
			b.assess(b.status[name])
		}
	}
}

// maintain gives a circuit its maintenance end points: those that it had stay. It is called with mu held.
func maintain(b *store, s *status) {
	had := s.meps
	s.meps = nil
	for _, x := range s.circuit.meps {
		m := s.circuit.mepAt(x.at)
		if s.meps == nil {
			s.meps = map[end]*cfm.MEP{}
		}
		if old := had[x.at]; old != nil && old.Config() == m.Config {
			s.meps[x.at] = old
		} else {
			s.meps[x.at] = cfm.NewMEP(m.Config)
		}
	}
	if delete(b.maintained, s.circuit.Name); len(s.meps) > 0 {
		b.maintained[s.circuit.Name] = true
	}
}
