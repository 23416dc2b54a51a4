package hosts

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// quarantineQuestions is how often holder and claimant are asked during Hold.
const quarantineQuestions = 10

// quarantine makes a claimant wait: the holder has not answered. The switch
// sends the holder's packets to the controller meanwhile.
func (t *table) quarantine(c *claim, h *host, d *flow.Decision) {
	c.waiting = true
	h.contested.Add(1)
	t.invalidate(h)
	t.notify(c, h, "quarantined")
	m := t.listen(h, d)
	m.Entry.HardTimeout = uint16(min((t.cfg.Hold+t.cfg.Verify)/time.Second+2, 65535))
	m.Entry.Apply = d.Output(flow.PortController)
}

// release ends the waiting of a claimant.
func (t *table) release(c *claim, h *host, d *flow.Decision) {
	if !c.waiting {
		return
	}
	c.waiting = false
	left := h.contested.Add(-1)
	t.invalidate(h)
	if left == 0 && d != nil {
		t.listen(h, d).Command = flow.DeleteStrict
	}
}

// endClaims ends all claims of one host or address. If d is nil, the switch stops
// sending the host's packets by itself.
func (t *table) endClaims(key claimKey, h *host, d *flow.Decision) {
	for _, c := range t.claims[key] {
		t.release(c, h, d)
		t.removeClaim(c.at)
	}
	delete(t.claims, key)
}

// listen appends a flow-mod about the entry that sends a host's packets to the
// controller.
func (t *table) listen(h *host, d *flow.Decision) *flow.Mod {
	p := h.at.Load()
	m := d.AddFlow(p.Switch)
	e := &m.Entry
	e.Table, e.Priority, e.Cookie = p.sw.table, flow.PriorityListen, flow.NewCookie(flow.OwnerHosts, 0, 0)
	e.Match.Set = flow.FieldInPort.Bit() | flow.FieldEthSrc.Bit()
	e.Match.Key.InPort, e.Match.Key.EthSrc = p.Port, h.id.mac()
	return m
}

// resettle moves a host that could not be asked whether it has moved. During
// Probation, one of its packets from the old place brings it back.
func (t *table) resettle(now int64, h *host, to flow.Location) refusal {
	from := h.at.Load().Location
	if why := t.move(now, h, to); why != accepted {
		return why
	}
	if now >= h.probation {
		h.home = from
	}
	h.probation = now + int64(t.cfg.Probation)
	return accepted
}

// returnHome moves a host back to where it was before another took its place.
func (t *table) returnHome(s sighting, h *host, d *flow.Decision) {
	taker := h.at.Load().Location
	t.endClaims(claimKey{who: h.id}, h, d)
	h.home, h.probation = flow.Location{}, 0
	t.transfer(s.now, h, t.places.place(s.at))
	t.exclude(s.now, &claim{key: claimKey{who: h.id}, by: h.id, at: taker}, h)
}

// exclude refuses a claimant after the true owner has come back.
func (t *table) exclude(now int64, c *claim, h *host) {
	c.since, c.refused = now, now+int64(t.cfg.Penalty)
	if len(t.claims) < maxClaims {
		t.startClaim(c)
		t.judging.moveUp(c.refused)
	}
	t.notify(c, h, "returned")
}

// notify publishes an event about a claim; the holder may be nil.
func (t *table) notify(c *claim, holder *host, outcome string) { t.publish(c.event(holder, outcome)) }

// event returns the event about a claim; the holder may be nil.
func (c *claim) event(holder *host, outcome string) *api.HostClaimed {
	e := &api.HostClaimed{
		Mac: c.key.who.mac().String(), Vlan: uint32(c.key.who.vlan()), At: api.NewLocation(c.at),
		Claimant: c.by.mac().String(), Outcome: outcome,
	}
	if c.key.ip.IsValid() {
		e.Ip = c.key.ip.String()
	}
	if holder != nil {
		e.Holder = api.NewLocation(holder.at.Load().Location)
	}
	return e
}

// publish adds an event about a claim to those that are to be published.
func (t *table) publish(e *api.HostClaimed) {
	t.claimNews.add(e)
	t.news.notify()
}

// maxClaimNews bounds the events about claims that wait to be published.
const maxClaimNews = 1024

// claimNews are events about claims. table.mu guards it.
type claimNews struct {
	list []*api.HostClaimed
	lost uint64
}

func (n *claimNews) add(e *api.HostClaimed) {
	if len(n.list) >= maxClaimNews {
		n.lost++
		return
	}
	n.list = append(n.list, e)
}

// claimEvents returns the events about claims that are not published yet.
func (t *table) claimEvents() []*api.HostClaimed {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.claimNews.list
	t.claimNews.list = nil
	return list
}

// countQuarantined returns the number of claimants in quarantine.
func (t *table) countQuarantined() (n int) {
	for _, list := range t.claims {
		for _, c := range list {
			if c.waiting {
				n++
			}
		}
	}
	return n
}

// claimant returns the place of a quarantined claimant of a host or of one of
// its addresses, nil if there is none.
func (t *table) claimant(h *host) *api.Location {
	if h.contested.Load() == 0 {
		return nil
	}
	keys := []claimKey{{who: h.id}}
	for _, a := range h.addresses {
		keys = append(keys, claimKey{who: h.id, ip: a.ip})
	}
	for _, key := range keys {
		for _, c := range t.claims[key] {
			if c.waiting {
				return api.NewLocation(c.at)
			}
		}
	}
	return nil
}

// describe returns the API's form of a host, with its binding and claimant.
func (t *table) describe(h *host) *api.Host {
	m := t.message(h)
	if one := t.bindings.of[h.id]; one != nil {
		m.Bound = one.kind()
	}
	m.ClaimedAt = t.claimant(h)
	return m
}
