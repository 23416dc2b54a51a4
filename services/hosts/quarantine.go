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
func (s *claims) quarantine(c *claim, h *host, d *flow.Decision) {
	c.waiting = true
	h.contested.Add(1)
	s.index.invalidate(h)
	s.notify(c, h, "quarantined")
	m := listen(h, d)
	m.Entry.HardTimeout = uint16(min((s.cfg.Hold+s.cfg.Verify)/time.Second+2, 65535))
	m.Entry.Apply = d.Output(flow.PortController)
}

// release ends the waiting of a claimant.
func (s *claims) release(c *claim, h *host, d *flow.Decision) {
	if !c.waiting {
		return
	}
	c.waiting = false
	left := h.contested.Add(-1)
	s.index.invalidate(h)
	if left == 0 && d != nil {
		listen(h, d).Command = flow.DeleteStrict
	}
}

// end ends all claims of one host or address. If d is nil, the switch stops
// sending the host's packets by itself.
func (s *claims) end(key claimKey, h *host, d *flow.Decision) {
	for _, c := range s.of[key] {
		s.release(c, h, d)
		s.uncount(c.at)
	}
	delete(s.of, key)
}

// listen appends a flow-mod about the entry that sends a host's packets to the
// controller.
func listen(h *host, d *flow.Decision) *flow.Mod {
	p := h.at.Load()
	m := d.AddFlow(p.Switch)
	e := &m.Entry
	e.Table, e.Priority, e.Cookie = p.sw.table, flow.PriorityListen, flow.NewCookie(flow.OwnerHosts, 0, 0)
	e.Match.Set = flow.FieldInPort.Bit() | flow.FieldEthSrc.Bit()
	e.Match.Key.InPort, e.Match.Key.EthSrc = p.Port, h.id.mac()
	return m
}

// exclude refuses a claimant after the true owner has come back.
func (s *claims) exclude(now int64, c *claim, h *host) {
	c.since, c.refused = now, now+int64(s.cfg.Penalty)
	if len(s.of) < maxClaims {
		s.start(c)
		s.due.moveUp(c.refused)
	}
	s.notify(c, h, "returned")
}

// notify publishes an event about a claim; the holder may be nil.
func (s *claims) notify(c *claim, holder *host, outcome string) { s.publish(c.event(holder, outcome)) }

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
func (s *claims) publish(e *api.HostClaimed) {
	if len(s.events) < maxClaimEvents {
		s.events = append(s.events, e)
	} else {
		s.lost++
	}
	s.news.notify()
}

// maxClaimEvents bounds the events about claims that wait to be published.
const maxClaimEvents = 1024

// takeEvents returns and forgets the events about claims that are not published yet.
func (s *claims) takeEvents() []*api.HostClaimed {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.events
	s.events = nil
	return list
}

// countQuarantined returns the number of claimants in quarantine.
func (s *claims) countQuarantined() (n int) {
	for _, list := range s.of {
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
func (s *claims) claimant(h *host) *api.Location {
	if h.contested.Load() == 0 {
		return nil
	}
	keys := []claimKey{{who: h.id}}
	for _, a := range h.addresses {
		keys = append(keys, claimKey{who: h.id, ip: a.ip})
	}
	for _, key := range keys {
		for _, c := range s.of[key] {
			if c.waiting {
				return api.NewLocation(c.at)
			}
		}
	}
	return nil
}
