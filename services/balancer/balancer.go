package balancer

import (
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// balancer is the virtual IPs and their connections.
type balancer struct {
	reached object.Limits // of the configuration
	cfg     atomic.Pointer[Config]
	log     *slog.Logger
	tagging flow.Tagging
	index   atomic.Pointer[index] // nil: there are no VIPs
	out     *outbox
	count   counts
	damage  func() string // what is wrong with the store
	regroup func()        // declares the groups of all switches again
	after   func(time.Duration, func())

	mu        object.Guard // guards the following
	vips      *object.Store[*vip]
	hosts     *object.Hosts
	net       nib.Snapshot
	switches  map[flow.DPID]*datapath
	table     connections
	probes    map[probeKey]*member
	probeLast uint16
	asked     map[place]asked // when unknown members were last asked for
	places    int             // grows with every edge port and switch that comes
	bindings  map[connKey]binding
	seals     map[backKey]seal
}

// datapath is what the stage needs of a switch, and what is known of its entries.
type datapath struct {
	connected bool
	info      *api.Switch // read-only
	rewrites  bool        // has the table in which addresses are translated
	away      int64
	now, read session // it is connected by, and its entries were last reported of
	told      bool    // read is known
	again     int64   // when it is to report once more, 1 for at once; 0: it need not
	doubts    int     // how many reports in turn were too early to tell
}

func newBalancer(cfg *Config, store object.Bucket, log *slog.Logger) *balancer {
	b := &balancer{
		log: log, out: newOutbox(), damage: func() string { return "" }, regroup: func() {},
		after:    func(d time.Duration, f func()) { time.AfterFunc(d, f) },
		hosts:    object.NewHosts(),
		switches: map[flow.DPID]*datapath{}, table: newConnections(), probes: map[probeKey]*member{}, asked: map[place]asked{},
		bindings: map[connKey]binding{}, seals: map[backKey]seal{},
	}
	b.cfg.Store(cfg)
	b.vips = object.New(&b.mu, store, object.Kind[*vip]{
		What: "vip", Many: "VIPs", Most: func() int { return b.cfg.Load().Vips }, Raise: "balancer.vips",
		Name:    func(v *vip) string { return v.name },
		Format:  object.Messages(b.parse, func(v *vip) *api.Vip { return v.said }),
		Changed: b.changed,
		Bad:     func(name string, err error) { log.Warn("vip of an earlier run not read", "key", name, "error", err) },
	})
	return b
}

// reach returns where a member is; false if that is not known or its switch
// cannot rewrite its answers. It is called with mu held.
func (b *balancer) reach(m *member) (station, bool) {
	s, ok := b.find(m.addr)
	if !ok {
		return s, false
	}
	sw := b.switches[s.At.Switch]
	return s, sw != nil && sw.connected && sw.rewrites
}

// networkChanged follows a change of the network; it reports whether it was about a
// member.
func (b *balancer) networkChanged(c nib.Change, now int64) (member bool) {
	c.Tag(&b.tagging)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = c.Is
	regroup := false
	for _, s := range c.Switches() {
		if s.Is != nil {
			b.switchChanged(s.Is, now)
			regroup = true
		}
	}
	for _, r := range c.Roles() {
		was, is := isEdge(r.Was), isEdge(r.Is)
		if is {
			b.places++
		}
		regroup = regroup || was != is
	}
	if regroup && b.shadows() {
		defer b.regroup()
	}
	for _, h := range c.Hosts() {
		member = b.hostChanged(h, now) || member
	}
	return member
}

func isEdge(r *nib.Role) bool { return r != nil && r.Is.Role == flow.RoleEdge.String() }

// switchChanged follows a change of a switch. It is called with mu held.
func (b *balancer) switchChanged(s *nib.Switch, now int64) {
	d, is := b.datapath(s.Key), s.Is.Switch
	d.now, d.info = session{is.Since, is.Address}, is
	if d.connected = is.Connected; !d.connected {
		d.away = now
		return
	}
	b.places++
	d.rewrites = is.Lack(api.NeedTables) == ""
}

// datapath returns what is known of a switch. It is called with mu held.
func (b *balancer) datapath(sw flow.DPID) *datapath {
	d := b.switches[sw]
	if d == nil {
		d = &datapath{}
		b.switches[sw] = d
	}
	return d
}

// unread returns the connected switches that have not reported the balancer's
// entries since they connected, or since this run began, and those whose report was too
// early to tell.
func (b *balancer) unread(now int64) (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sw, d := range b.switches {
		if d.connected && (!d.told || d.read != d.now || d.again != 0 && now >= d.again) {
			list = append(list, sw.String())
		}
	}
	return list
}

// hostChanged follows a change of a host; it reports whether it was about a member.
// It is called with mu held.
func (b *balancer) hostChanged(h nib.Step[nib.Host], now int64) bool {
	_, _, moved := b.hosts.Follow(h)
	concerned := false
	for _, v := range b.vips.List() {
		for _, m := range v.all() {
			if !slices.Contains(moved, m.addr) {
				continue
			}
			concerned = true
			m.health.hasten()
			if s, ok := b.reach(m); ok {
				b.relocate(m, s, now)
			}
		}
	}
	return concerned
}

// relocate moves a member's connections with it to another switch or another
// Ethernet address. It is called with mu held.
func (b *balancer) relocate(m *member, s station, now int64) {
	d := &flow.Decision{}
	for c := range m.conns {
		if c.mac != s.MAC && c.there && c.kind != direct && c.kind != through {
			c.mac = s.MAC
			c.addThere(d)
		}
		if c.kind == through || c.egress == s.At.Switch || !c.there && !c.back {
			continue
		}
		if c.back {
			c.removeBack(d)
		}
		b.table.place(c, c.ingress, s.At.Switch)
		c.addBack(d)
		c.sent = now
		c.mark(c.there, true)
	}
	b.out.post(d)
}

func prefixOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
