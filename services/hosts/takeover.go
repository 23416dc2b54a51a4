package hosts

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// relocate handles a sighting of a host at a place other than its own.
func (t *table) relocate(s sighting, h *host, d *flow.Decision) refusal {
	switch {
	case s.at == h.home && s.now < h.probation:
		t.returnHome(s, h, d)
		return accepted
	case h.quarantine > s.now:
		return quarantined
	case !h.at.Load().isReachable():
		return t.resettle(s.now, h, s.at)
	}
	return t.contest(s, claim{key: claimKey{who: h.id}, by: s.who, at: s.at}, h, d)
}

// contest handles a claim against a holder that may be alive.
func (t *table) contest(s sighting, c claim, holder *host, d *flow.Decision) refusal {
	why, won := t.claims.contest(s, c, holder, d)
	if won != nil {
		return t.grantClaim(s.now, won, d)
	}
	return why
}

// grantClaim gives the claimant the address or place that it claims.
func (t *table) grantClaim(now int64, c *claim, d *flow.Decision) refusal {
	h := t.index.host(c.key.who)
	waited, event := c.waiting, c.event(h, "taken")
	t.claims.end(c.key, h, d)
	why := t.moveToClaimant(now, c, h)
	if waited && why == accepted {
		t.claims.publish(event)
	}
	return why
}

// moveToClaimant moves a host, or its address, to a claimant.
func (t *table) moveToClaimant(now int64, c *claim, h *host) refusal {
	if !c.key.ip.IsValid() {
		return t.resettle(now, h, c.at)
	}
	claimant := t.index.host(c.by)
	if claimant == nil || claimant.at.Load().Location != c.at {
		return unverified
	}
	t.strip(h, c.key.ip)
	t.former.startProbation(h.id, c.key.ip, now+int64(t.cfg.Probation))
	return t.grant(now, claimant, c.key.ip, c.used, c.advert)
}

// decideClaims decides the claims that are due, and probes again for those that stay.
func (t *table) decideClaims(now int64, d *flow.Decision) {
	for _, list := range t.claims.of {
		for _, c := range slices.Clone(list) {
			why, won := t.claims.judge(now, c, d)
			if won != nil {
				why = t.grantClaim(now, won, d)
			}
			t.claims.pursue(now, c, why, d)
		}
	}
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
	t.claims.end(claimKey{who: h.id}, h, d)
	h.home, h.probation = flow.Location{}, 0
	t.transfer(s.now, h, t.places.place(s.at))
	t.claims.exclude(s.now, &claim{key: claimKey{who: h.id}, by: h.id, at: taker}, h)
}

// giveBack returns an address to its former holder.
func (t *table) giveBack(s sighting, h, taker *host, e evidence) refusal {
	ip := e.ip
	t.strip(taker, ip)
	t.former.startProbation(taker.id, ip, 0)
	why := t.grant(s.now, h, ip, true, e.advert)
	if why == accepted {
		t.claims.exclude(s.now, &claim{key: claimKey{who: h.id, ip: ip}, by: taker.id, at: taker.at.Load().Location}, h)
	}
	return why
}
