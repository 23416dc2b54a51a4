package scp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/sbi"
)

// proxy is what is known of a core, and what the balancer is to do for it.
type proxy struct {
	cfg    atomic.Pointer[Config]
	log    *slog.Logger
	count  counts
	index  atomic.Pointer[index] // for packets
	direct *direct
	out    chan struct{} // notified when something has changed
	ready  chan struct{} // closed when the front listens, or has failed to
	begun  func()        // closes it
	net    atomic.Pointer[nib.Snapshot]
	wire   *wire // nil: the front has a host, or there is none
	ways   *ways
	strain *strain

	surveyed atomic.Bool // whose consumers are, the NRF has said: nobody unknown is to be known soon

	traffic *traffic
	single  *pairMeter

	tagging flow.Tagging  // of virtual networks
	reached object.Limits // of the configuration

	mu    object.Guard // guards the following
	hosts *object.Hosts
	registry
	names     sbi.Names // of scp.names, and those that have been resolved
	endpoints map[string]*endpoint
	apart     apart
	refused   refusals
	policies  *object.Store[*api.ScpPolicy]
	weights   appWeights
	searches  searches
	serving   bool   // the front listens
	silent    string // why it does not
	leaving   bool   // it serves, but ends: new connections are to pass it by
	shadowed  bool   // the balancer has put the NRF's VIP in force
	nrf       string // what the NRF last did
	groups    groups
	shelf     shelf
	version   uint64 // grows with every change of what is stored or answered
}

func newProxy(cfg *Config, policies object.Bucket, log *slog.Logger) *proxy {
	p := &proxy{
		log: log, out: make(chan struct{}, 1), hosts: object.NewHosts(), registry: newRegistry(), names: cfg.names(),
		endpoints: map[string]*endpoint{}, apart: apart{}, refused: refusals{}, weights: appWeights{},
		direct: newDirect(), ways: newWays(), traffic: newTraffic(noCounter, noHistogram), single: newPairMeter(unreadPairs{}), searches: searches{}, nrf: "not asked yet", shelf: newShelf(), ready: make(chan struct{}),
	}
	p.strain = newStrain(func(a netip.Addr) flow.Location {
		at, _ := p.station(a)
		return at.At
	})
	p.begun = sync.OnceFunc(func() { close(p.ready) })
	p.cfg.Store(cfg)
	p.index.Store(&index{})
	p.policies = object.New(&p.mu, policies, object.Kind[*api.ScpPolicy]{
		What: "policy", Many: "policies", Most: func() int { return 1000 }, Raise: "",
		Name:    (*api.ScpPolicy).GetType,
		Format:  object.Messages(readPolicy, func(m *api.ScpPolicy) *api.ScpPolicy { return m }),
		Changed: func(_, _ *api.ScpPolicy) { p.reindex(); p.touch() },
		Bad:     func(name string, err error) { log.Warn("policy of an earlier run not read", "key", name, "error", err) },
	})
	return p
}

// configure takes another configuration. What has been answered by the old one is
// answered anew.
func (p *proxy) configure(cfg *Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Store(cfg)
	p.touch()
}

// touch notes that something has changed. It is called with mu held.
func (p *proxy) touch() {
	p.version++
	object.Notify(p.shelf.dirty)
	object.Notify(p.out)
}

// restore takes what an earlier run has stored. Instances whose heartbeats passed
// here have the time of one to speak again.
func (p *proxy) restore(now int64) (instance, endpoints func(key, value string)) {
	return func(key, value string) {
			var k kept
			if err := json.Unmarshal([]byte(value), &k); err != nil {
				p.log.Warn("instance of an earlier run not read", "key", key, "error", err)
				return
			}
			x, err := newProducer(k.Profile, k.By)
			if err == nil && x.profile.NFInstanceID == "" {
				x.profile.NFInstanceID = key
			}
			if err != nil {
				p.log.Warn("instance of an earlier run not read", "key", key, "error", err)
				return
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			for name, at := range k.Names {
				if p.names[name] == nil && p.cfg.Load().Resolver != "" {
					p.names[name] = at
				}
			}
			resolve(p, x)
			x.unproven = k.Doubted
			if x.drained, x.relayed = k.Drained, k.Relayed; k.Watched {
				x.heard = now
			}
			if k.Ended {
				p.ended[x.id()] = x
			} else {
				p.enter(x)
			}
		}, func(key, value string) {
			var e endpoint
			if err := json.Unmarshal([]byte(value), &e); err != nil || len(e.Addrs) == 0 || len(e.Doors) == 0 {
				p.log.Warn("endpoint of an earlier run not read", "key", key, "error", err)
				return
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			e.used = now
			if e.Addrs = slices.DeleteFunc(e.Addrs, func(a netip.Addr) bool { return a == p.own() }); len(e.Addrs) == 0 {
				p.log.Warn("endpoint of an earlier run gets another address: the front has its own now", "key", key, "address", p.own())
				return
			}
			p.endpoints[e.name()] = &e
			p.reindex()
		}
}

// instances returns what is to be stored of the instances. It is called with mu
// held, as is stored.
func (p *proxy) instances() map[string]string {
	want, table := map[string]string{}, p.cfg.Load().names()
	for _, list := range []map[string]*producer{p.ended, p.book} {
		for id, x := range list {
			k := kept{Profile: x.text, By: x.by, Relayed: x.relayed, Watched: x.heard != 0, Drained: x.drained, Doubted: x.unproven, Ended: p.book[id] == nil, Names: sbi.Names{}}
			for _, name := range x.profile.HostNames() {
				if at := p.names[name]; at != nil && table[name] == nil {
					k.Names[name] = at
				}
			}
			text, _ := json.Marshal(k) // has been JSON
			want[id] = string(text)
		}
	}
	return want
}

// stored returns what is to be stored of the endpoints.
func (p *proxy) stored() map[string]string {
	want := map[string]string{}
	for name, e := range p.endpoints {
		text, _ := json.Marshal(e) // of texts and numbers
		want[name] = string(text)
	}
	return want
}

// learn enters an instance. The error says that there is no room, or that its
// addresses are not its registrant's.
func (p *proxy) learn(x *producer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !idForm.MatchString(x.id()) {
		return fmt.Errorf("%.80q is no instance id", x.id())
	}
	resolve(p, x)
	was := p.book[x.id()]
	if p.ended[x.id()] != nil && x.heard == 0 {
		return nil // the NRF does not know yet
	}
	if was == nil && len(p.book) >= p.cfg.Load().Instances {
		p.count.noRoom.Add(1)
		return fmt.Errorf("there are %d instances already (scp.instances)", len(p.book))
	} else if was != nil {
		x.drained = was.drained
		if x.heard == 0 {
			x.heard, x.by, x.relayed, x.passed, x.listed = was.heard, was.by, was.relayed, was.passed, was.listed
		}
	}
	x.relayed = x.relayed || x.by.IsValid() && !slices.Contains(x.named, x.by) && p.relays(x.by)
	var had []netip.Addr
	if was != nil {
		had = was.addresses()
	}
	if err := p.misplaced(x.profile, x.by, had); err != nil {
		return err
	}
	if x.whyNot != "" && (was == nil || string(was.text) != string(x.text)) {
		p.searches.askAnew(x.profile.NFType)
	}
	for _, a := range x.named {
		if x.by.IsValid() && !a.IsUnspecified() && !slices.Contains(had, a) && !p.relays(x.by) && !p.together(a, x.by) {
			x.unproven = append(x.unproven, a)
		}
	}
	isNew := p.instance(x.id()) == nil
	p.enter(x)
	for _, old := range p.replaced(x) {
		if isNew && x.heard != 0 {
			p.log.Info("an instance has registered at the place of another, which has ended", "type", x.profile.NFType, "instance", x.id(), "ended", old.id())
			p.end(old)
		}
	}
	return nil
}

// resolve finds where an instance is. Nobody else stands for the NRF, at whichever of its
// addresses it is asked: not an end point. It is called with the proxy's mu held.
func resolve(p *proxy, x *producer) {
	x.resolve(p.names)
	nrf, _, _ := p.cfg.Load().nrf()              // Validate has seen it
	own := !x.by.IsValid() || x.by == nrf.Addr() // who else registers it wants to be taken for it
	if x.front = own && x.profile.NFType == sbi.NRF && slices.Contains(x.named, nrf.Addr()); x.front {
		x.whyNot = "it is the NRF, in place of which the front answers"
	}
}

// enter puts an instance into the book. It is called with mu held.
func (p *proxy) enter(x *producer) {
	p.put(x)
	p.reindex()
	p.touch()
}

// knows reports whether an instance is in the book.
func (p *proxy) knows(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.instance(id) != nil
}

// forget takes an instance out of the book that has been deregistered.
func (p *proxy) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetNow(id)
}

// forgetNow is forget, called with mu held.
func (p *proxy) forgetNow(id string) {
	delete(p.ended, id)
	p.searches.drop(id)
	if p.drop(id) {
		p.reindex()
	}
	p.touch()
}

// end takes an instance out of the book that has gone without deregistering. The NRF
// may list it for a time, and discoveries do not find it then; when it speaks, it is
// back. It is called with mu held.
func (p *proxy) end(x *producer) {
	if p.drop(x.id()) {
		p.ended[x.id()], x.turn = x, p.turn
		p.reindex()
		p.touch()
	}
}

// sweep forgets the instances that have gone. It is called with mu held.
func (p *proxy) sweep(now int64) {
	gone, changed := p.registry.sweep(now, p.cfg.Load().Margin)
	if changed {
		p.touch() // what discoveries find
	}
	for _, id := range gone {
		p.forgetNow(id)
	}
}

// networkChanged follows a change of the network.
func (p *proxy) networkChanged(c nib.Change) {
	c.Tag(&p.tagging)
	p.net.Store(&c.Is)
	p.mu.Lock()
	for _, h := range c.Hosts() {
		p.hosts.Follow(h)
	}
	// An address that nobody had seen is asked for by the balancer, as one of a member.
	changed := p.prove(p.together, p.located)
	for _, x := range changed {
		if x.foreign.IsValid() {
			p.count.poisoned.Add(1)
			p.log.Warn("an instance has registered an address of another port of the network; it is not found any more", "instance", x.id(), "address", x.foreign, "by", x.by)
		}
	}
	if len(changed) > 0 {
		p.reindex()
		p.touch()
	}
	if p.wire != nil {
		p.wire.hostsChanged(p.hosts)
	}
	p.mu.Unlock()
	p.ways.gates.networkChanged(c)
	if p.wire != nil {
		p.wire.networkChanged(c)
	}
}

// own returns the address of a front without a host; invalid if there is none.
func (p *proxy) own() netip.Addr {
	if p.wire == nil {
		return netip.Addr{}
	}
	return p.wire.own
}

// located returns at which port of the network an address is.
func (p *proxy) located(a netip.Addr) (at object.Station, known bool) {
	return p.hosts.Station(object.In(a, object.VLAN(uint32(p.cfg.Load().VLAN))))
}

// station is located, called without mu held.
func (p *proxy) station(a netip.Addr) (at object.Station, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.located(a)
}

// policyOf returns the policy of a type. It is called with mu held.
func (p *proxy) policyOf(t sbi.NFType) *api.ScpPolicy {
	if m := p.policies.Get(string(t)); m != nil {
		return m
	}
	return &api.ScpPolicy{Type: string(t), Algorithm: algorithms[0], Per: pers[0], Again: agains[0], OwnAddress: owns[0]}
}

// overloadOf returns the load from which on a policy refuses new connections, in percent;
// 0 is never.
func (p *proxy) overloadOf(policy *api.ScpPolicy) int {
	return cmp.Or(int(policy.GetOverload()), p.cfg.Load().Overload)
}

var (
	algorithms = []string{"weighted", "least", "hash", twoChoices, byLocality, appPrefix + "NAME"}
	pers       = []string{"pair", "connection"}
	agains     = []string{"bound", "balance"}
	owns       = []string{"count", "forbid", ownBalance}
)

// ownBalance is the word of a policy by which connections to producers' own addresses are balanced.
const ownBalance = "balance"

// readPolicy completes a policy, or says what is wrong.
func readPolicy(m *api.ScpPolicy) (*api.ScpPolicy, error) {
	m = &api.ScpPolicy{Type: strings.ToUpper(m.GetType()), Algorithm: m.GetAlgorithm(), Per: m.GetPer(), Again: m.GetAgain(), IdleTimeout: m.GetIdleTimeout(), Overload: m.GetOverload(),
		Errors: m.GetErrors(), ResponseMs: m.GetResponseMs(), Rate: m.GetRate(), OwnAddress: m.GetOwnAddress(), Sample: m.GetSample()}
	fail := func(format string, args ...any) (*api.ScpPolicy, error) {
		return nil, api.Errorf(codes.InvalidArgument, "policy of %s: "+format, append([]any{m.Type}, args...)...)
	}
	if err := api.CheckName("type", m.Type); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	for _, x := range []struct {
		key   string
		is    *string
		words []string
	}{{"algorithm", &m.Algorithm, algorithms}, {"per", &m.Per, pers}, {"again", &m.Again, agains}, {"own_address", &m.OwnAddress, owns}} {
		if *x.is == "" {
			*x.is = x.words[0]
		}
		if *x.is = strings.ToLower(*x.is); x.key == "algorithm" && strings.HasPrefix(*x.is, appPrefix) {
			if err := api.CheckName("algorithm "+appPrefix, (*x.is)[len(appPrefix):]); err != nil {
				return fail("%w", err)
			}
			continue
		}
		if !slices.Contains(x.words, *x.is) {
			return fail("%s %q: want %s", x.key, *x.is, strings.Join(x.words, ", "))
		}
	}
	switch {
	case m.IdleTimeout > 32_000:
		return fail("idle_timeout %d: want at most 32000 seconds", m.IdleTimeout)
	case m.Overload > 100:
		return fail("overload %d: want 1 to 100 percent, or 0 for scp.overload", m.Overload)
	case m.Errors > 100:
		return fail("errors %d: want 1 to 100 percent, or 0 for scp.errors", m.Errors)
	case m.Sample > api.MostSampled:
		return fail("sample %d: want at most %d packets", m.Sample, api.MostSampled)
	case m.ResponseMs > 60_000:
		return fail("response_ms %d: want at most 60000", m.ResponseMs)
	case m.Rate > 100_000_000:
		return fail("rate %d: want at most 100000000 packets a second", m.Rate)
	}
	return m, nil
}

// checkType refuses a type that nobody can have: it is none of 3GPP's or of those
// that operators define, and no instance of it is known.
func checkType(p *proxy, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := func(x *producer) bool { return strings.EqualFold(string(x.profile.NFType), name) }
	if name == "" || sbi.NFType(strings.ToUpper(name)).Standard() || slices.ContainsFunc(slices.Collect(maps.Values(p.book)), of) {
		return nil
	}
	return api.Errorf(codes.InvalidArgument, "type %.80q: want one of 3GPP's (TS 29.510), CUSTOM_ and more, or that of an instance that is known; 3GPP has %s", name, joinTypes(sbi.Types()))
}

// joinTypes writes types as a list.
func joinTypes(types []sbi.NFType) string {
	var names []string
	for _, t := range types {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// typesOf returns their types, in order.
func typesOf(list []*producer) []sbi.NFType {
	types := map[sbi.NFType]bool{}
	for _, x := range list {
		types[x.profile.NFType] = true
	}
	return slices.Sorted(maps.Keys(types))
}

// started is when this process began.
var started = time.Now()

// now returns the time, in nanoseconds: that at which the process began, and how
// long it has run since, so that no producer is late when somebody sets the clock.
func now() int64 { return started.UnixNano() + int64(time.Since(started)) }
