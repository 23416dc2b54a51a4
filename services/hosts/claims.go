package hosts

import (
	"net/netip"

	"weft/flow"
)

// A claim is somebody's saying that it has what another host has: its Ethernet
// address, seen at another port, or its IP address. Who is right is found out
// by asking the holder, twice, where it is. If it answers within Verify the
// claimant is a liar; if it does not, it has moved, or is gone. (A port that is
// down needs no asking.) Until then the claimant's packets are refused.
//
// A host without IP addresses cannot be asked; it is heard only if it sends
// something that comes to the controller.
type claim struct {
	key     claimKey
	by      id            // who claims
	at      flow.Location // where
	since   int64
	asked   int   // how often the holder was asked: twice, before its silence counts
	last    int64 // when it was last asked
	refused int64 // not 0: it was wrong, and is refused until then
}

// claimKey is what is claimed: the place of a host, or one of its addresses.
type claimKey struct {
	who id         // the holder
	ip  netip.Addr // not valid: the place
}

// maxClaims bounds the claims that wait at a time.
const maxClaims = 4096

// relocate takes a sighting of a host at another place than its own.
func (t *table) relocate(s sighting, h *host, d *flow.Decision) refusal {
	if h.quarantine > s.now {
		return quarantined
	}
	if !h.at.Load().alive() {
		return t.move(s.now, h, s.at)
	}
	return t.contest(s, claim{key: claimKey{who: h.id}, by: s.who, at: s.at}, h, d)
}

// contest takes a claim against a holder who may be alive.
func (t *table) contest(s sighting, c claim, holder *host, d *flow.Decision) refusal {
	old := t.claims[c.key]
	switch {
	case old == nil && len(t.claims) >= maxClaims:
		return tableLimit
	case old == nil:
		c.since, c.asked, c.last = s.now, 1, s.now
		t.claims[c.key] = &c
		t.ask(holder, c.key.ip, d)
		t.judging.at(s.now + int64(t.cfg.Verify)/2)
		return unverified
	case old.refused > s.now || old.by != c.by || old.at != c.at:
		return spoofed
	}
	return t.resolve(s.now, old)
}

// resolve decides a claim: accepted, spoofed, or unverified still.
func (t *table) resolve(now int64, c *claim) refusal {
	h := t.host(c.key.who)
	if h == nil || c.key.ip.IsValid() && h.has(c.key.ip) == nil {
		delete(t.claims, c.key)
		return accepted
	}
	if c.refused != 0 {
		if c.refused <= now {
			delete(t.claims, c.key)
		}
		return spoofed
	}
	heard := h.seen.Load()
	if c.key.ip.IsValid() {
		heard = h.has(c.key.ip).confirmed
	}
	switch {
	case heard > c.since:
		c.refused = now + int64(t.cfg.Penalty)
		t.judging.at(c.refused)
		return spoofed
	case (c.asked < 2 || now-c.last < int64(t.cfg.Verify)/2) && h.at.Load().alive():
		return unverified
	}
	delete(t.claims, c.key)
	if !c.key.ip.IsValid() {
		return t.move(now, h, c.at)
	}
	claimant := t.host(c.by)
	if claimant == nil || claimant.at.Load().Location != c.at {
		return accepted
	}
	t.strip(h, c.key.ip)
	return t.grant(now, claimant, c.key.ip)
}

// claimed reports whether a claim is about a place.
func (t *table) claimed(p *place) bool {
	for _, c := range t.claims {
		if c.at == p.Location {
			return true
		}
	}
	return false
}

// judge decides the claims whose time has come, and asks a second time where
// half of it is over.
func (t *table) judge(now int64, d *flow.Decision) {
	verify := int64(t.cfg.Verify)
	for _, c := range t.claims {
		switch t.resolve(now, c) {
		case unverified:
			if c.asked == 1 && now-c.last >= verify/2 {
				c.asked, c.last = 2, now
				t.ask(t.host(c.key.who), c.key.ip, d)
			}
			t.judging.at(c.last + verify/2)
		case spoofed:
			if c.refused > now {
				t.judging.at(c.refused)
			}
		}
	}
}
