package hosts

import (
	"fmt"
	"math"
	"net/netip"
	"sync"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// A table holds the hosts and places, and decides about them. Its methods take
// the time in nanoseconds since 1970. The index may be read at any time; mu
// guards all else.
type table struct {
	shared
	owned       reservedAddresses
	tally       *tally
	places      places
	claims      claims
	silences    silences
	pages       pages
	former      formerHolders
	notices     notices
	questions   questions
	noted       earlySightings
	asking      flow.Decision // what admit has decided, which advance hands on
	permits     permits
	bindings    bindings
	enforcement enforcement
	holds       holds
	ageing      deadline // of silent hosts
	unsaid      int      // hosts of an earlier run that have not been published, nor given up
}

func newTable(cfg *Config) *table {
	owned, err := cfg.gateways()
	if err != nil {
		panic("hosts: configuration not validated: " + err.Error())
	}
	own := *cfg
	probes, _ := flow.ParseMAC(cfg.ProbeMAC) // validated
	t := &table{
		shared: shared{&own, newIndex(), newAnnouncer(), &object.Limits{}, &sync.Mutex{}}, owned: owned, tally: &tally{},
		former: formerHolders{}, noted: earlySightings{}, places: newPlaces(&own), ageing: math.MaxInt64,
	}
	t.questions = questions{shared: t.shared, probes: probes.Uint64(), due: math.MaxInt64}
	t.notices = notices{places: &t.places, questions: &t.questions, due: map[formerKey]*notice{}}
	t.permits = permits{shared: t.shared, places: &t.places, questions: &t.questions, changed: map[flow.DPID]map[id]struct{}{}}
	t.silences = newSilences(t.shared, &t.places, func(now int64) { t.claims.due.moveUp(now) })
	t.claims = newClaims(t.shared, &t.places, &t.questions, &t.silences)
	t.bindings = newBindings(t.shared, &t.places, &t.claims)
	t.enforcement = enforcement{shared: t.shared, bindings: &t.bindings, keepers: map[flow.DPID]*api.Switch{}, beyond: map[flow.DPID]id{}}
	t.holds.shared = t.shared
	t.configure(0)
	return t
}

// observe handles a sighting: it learns the host, moves it, or returns why not,
// and records the addresses that the packet proves. Questions to hosts go into
// d. The host is nil if it is not known.
func (t *table) observe(s sighting, d *flow.Decision) (*host, refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.observeLocked(s, d)
}

// observeLocked is observe with mu held.
func (t *table) observeLocked(s sighting, d *flow.Decision) (*host, refusal) {
	h, why := t.locate(s, d)
	if why != accepted {
		return h, why
	}
	if a := h.has(s.source); a != nil {
		a.confirmed, a.used = s.now, true
	}
	for _, e := range s.says {
		why = t.handleEvidence(s, e, d)
		if policy := why == bound || why == gateway; why != accepted && (e.who == s.who || policy) {
			return h, why // what a DHCP server says of its client is no claim of its own
		}
	}
	return h, accepted
}

// locate ensures that the sender is at the place where it was seen.
func (t *table) locate(s sighting, d *flow.Decision) (*host, refusal) {
	if t.places.links[s.at] {
		return nil, onLink
	}
	h := t.index.host(s.who)
	switch {
	case h != nil && h.at.Load().Location == s.at:
		h.seen.Store(s.now)
		h.answers = h.answers || s.answer
		if h.contested.Load() > 0 {
			t.claims.due.moveUp(s.now)
		}
		return h, accepted
	case !t.bindings.allow(s.who, s.at):
		t.bindings.violate(s.now, claim{key: claimKey{who: s.who}, by: s.who, at: s.at})
		return nil, bound
	case h == nil:
		return t.learn(s)
	}
	return h, t.relocate(s, h, d)
}

// learn adds a new host.
func (t *table) learn(s sighting) (*host, refusal) {
	if t.index.size() >= t.cfg.Limit {
		t.reached.Reach(s.now, "hosts.limit", t.cfg.Limit, "")
		return nil, tableLimit
	}
	p := t.places.place(s.at)
	if why := t.bindings.room(s.now, p, s.who); why != accepted {
		t.places.scheduleRemoval(p)
		return nil, why
	}
	h := &host{id: s.who, first: s.now, source: usable(s.source)}
	h.held.Store(t.holds.bits(h.id, s.at))
	h.at.Store(p)
	h.seen.Store(s.now)
	p.hosts[h] = struct{}{}
	t.index.put(h)
	t.news.add(h)
	t.ageing.moveUp(s.now + int64(t.cfg.Age)*8/10)
	t.bindings.stick(s.now, h)
	if h.source.IsValid() {
		t.questions.call(s.now, h)
	}
	return h, accepted
}

// move moves a host to another place, unless it moves too often.
func (t *table) move(now int64, h *host, to flow.Location) refusal {
	if h.quarantine > now {
		return quarantined
	}
	p := t.places.place(to)
	if why := t.bindings.room(now, p, h.id); why != accepted {
		t.places.scheduleRemoval(p)
		return why
	}
	if len(h.moved) >= t.cfg.Moves {
		if now-h.moved[len(h.moved)-t.cfg.Moves] < int64(t.cfg.MoveWindow) {
			h.quarantine = now + int64(t.cfg.Quarantine)
			t.places.scheduleRemoval(p)
			return quarantined
		}
		h.moved = append(h.moved[:0], h.moved[1:]...)
	}
	h.moved = append(h.moved, now)
	t.transfer(now, h, p)
	t.bindings.stick(now, h)
	return accepted
}

// transfer puts a host at another place.
func (t *table) transfer(now int64, h *host, p *place) {
	h.moves++
	t.holds.apply(h, p.Location) // before its first packet from there
	from := h.at.Load()
	delete(from.hosts, h)
	t.places.scheduleRemoval(from)
	p.hosts[h] = struct{}{}
	h.at.Store(p)
	h.seen.Store(now)
	t.index.invalidate(h)
	t.claims.end(claimKey{who: h.id}, h, nil)
	t.news.add(h)
	h.called = false
	t.questions.call(now, h)
}

// handleEvidence handles evidence of an address.
func (t *table) handleEvidence(s sighting, e evidence, d *flow.Decision) refusal {
	if t.owned.ips[e.ip] {
		return gateway
	}
	owner, owned := t.bindings.owners.of(e.ip, e.who.vlan())
	if owned && owner != e.who {
		t.bindings.violate(s.now, claim{key: claimKey{who: owner, ip: e.ip}, by: e.who, at: s.at})
		return bound
	}
	h := t.index.host(e.who)
	if h == nil {
		return accepted // DHCP for a host not seen yet
	}
	if a := h.has(e.ip); a != nil {
		if e.who == s.who {
			a.confirmed, a.used = s.now, true
		}
		if e.advert.known {
			a.advert = e.advert
		}
		return accepted
	}
	holder := t.index.holder(e.ip, e.who.vlan())
	switch {
	case holder == nil:
	case t.former.isReturn(s, e):
		return t.giveBack(s, h, holder, e)
	case owned || holder.at.Load() == h.at.Load() || !holder.at.Load().isReachable():
		t.strip(holder, e.ip)
	default:
		return t.contest(s, claim{key: claimKey{who: holder.id, ip: e.ip}, by: h.id, at: h.at.Load().Location, advert: e.advert, assigned: e.who != s.who}, holder, d)
	}
	return t.grant(s.now, h, e.ip, e.who == s.who, e.advert)
}

// grant gives an address to a host. A host with too many loses the one that it
// has not confirmed for longest, if that is long ago; else Weft does not know the
// new one, and floods questions for it.
func (t *table) grant(now int64, h *host, ip netip.Addr, used bool, said advertFlags) refusal {
	if len(h.addresses) >= t.cfg.AddressLimit {
		oldest := &h.addresses[0]
		for i := range h.addresses {
			if h.addresses[i].confirmed < oldest.confirmed {
				oldest = &h.addresses[i]
			}
		}
		if now-oldest.confirmed < int64(t.cfg.Age) {
			t.tally.add(addressLimit)
			t.reached.Reach(now, "hosts.address_limit", t.cfg.AddressLimit, fmt.Sprintf("host %v at %s", h.id.mac(), placeText(h.at.Load().Location)))
			return accepted // it is asked for as one that nobody has
		}
		t.strip(h, oldest.ip)
	}
	h.addresses = append(h.addresses, address{ip: ip, confirmed: now, used: used, advert: said})
	t.index.bind(ip, h)
	t.news.add(h)
	t.questions.call(now, h)
	t.bindings.stickAddress(h, ip)
	if t.former.belongedToOther(now, h, ip) {
		t.notices.queue(now, h, ip)
	}
	return accepted
}

// strip takes an address from a host.
func (t *table) strip(h *host, ip netip.Addr) {
	for i := range h.addresses {
		if h.addresses[i].ip == ip {
			h.addresses = append(h.addresses[:i], h.addresses[i+1:]...)
			break
		}
	}
	t.index.unbind(ip, h)
	t.claims.end(claimKey{who: h.id, ip: ip}, h, nil)
	t.former.record(h, ip)
	t.news.add(h)
}

// remove gives up a host.
func (t *table) remove(h *host) {
	h.gone.Store(true)
	t.index.drop(h)
	for _, a := range h.addresses {
		t.index.unbind(a.ip, h)
		t.claims.end(claimKey{who: h.id, ip: a.ip}, h, nil)
		t.former.record(h, a.ip)
	}
	t.claims.end(claimKey{who: h.id}, h, nil)
	delete(h.at.Load().hosts, h)
	t.places.scheduleRemoval(h.at.Load())
	t.news.add(h)
}
