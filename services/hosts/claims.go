package hosts

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A claim is a packet that contradicts what is known: it comes with the Ethernet
// address of a host from another port, or with its IP address from another
// host. Both sides are asked, twice, within Verify:
//
//   - A holder that is heard, by an answer or by any packet, keeps what it has;
//     the claimant is refused for Penalty. Who has an address may give it up later,
//     and the claimant does not say again that it wants it: so both are asked again
//     every second, more rarely after a while, until one has the address alone.
//   - A holder that has answered questions before, and does not now, has lost
//     it to a claimant that answers where it is, or to which a DHCP server has
//     given the address.
//   - Any other claimant is in quarantine until its packets have come for Hold
//     and the holder was not heard in that time.
//
// A port that is down needs no asking: the claimant has what it claims at once.
// Until a claim is decided the claimant's packets are refused.
type claim struct {
	key      claimKey
	by       id            // who claims
	at       flow.Location // where
	since    int64
	asked    int   // how often both were asked: twice, before silence counts
	last     int64 // when they were last asked
	heard    int64 // when the claimant was last heard
	answered bool  // the claimant has answered
	used     bool  // it has sent packets with the address
	assigned bool  // a DHCP server has given it the address
	waiting  bool  // the claimant is in quarantine
	refused  int64 // not 0: it was wrong, and is refused until then
	first    int64 // of an address: when it was first found wrong; both are asked again
	advert   advertFlags
}

// claimKey is the object of a claim: the place of a host, or one of its
// addresses.
type claimKey struct {
	who id         // the holder
	ip  netip.Addr // not valid: the place
}

const (
	maxClaims    = 4096 // claims at a time
	maxClaimants = 4    // of one host or address
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
	return t.contestHolder(s, claim{key: claimKey{who: h.id}, by: s.who, at: s.at}, h, d)
}

// contestHolder handles a claim against a holder that may be alive.
func (t *table) contestHolder(s sighting, c claim, holder *host, d *flow.Decision) refusal {
	list := t.claims[c.key]
	i := slices.IndexFunc(list, func(o *claim) bool { return o.by == c.by && o.at == c.at })
	if i < 0 {
		// A port has only one claimant, so that hosts behind one port cannot
		// fill the list.
		if j := slices.IndexFunc(list, func(o *claim) bool { return o.at == c.at && o.refused == 0 }); j >= 0 {
			t.release(list[j], holder, d)
			t.forget(list[j])
			list = t.claims[c.key]
		}
		if len(list) >= maxClaimants {
			list = t.endOldestClaim(s.now, list, holder, d)
		}
		if len(list) == 0 && len(t.claims) >= maxClaims || len(list) >= maxClaimants {
			t.reached.Reach(s.now, "the room for claims of hosts", maxClaims, "port "+placeText(s.at))
			return tableLimit
		}
		c.since, c.heard = s.now, s.now
		c.used = s.uses(holder.address(c.key.ip))
		for _, o := range list { // it was elsewhere before, and the holder not heard since
			if o.by == c.by && o.refused == 0 {
				c.since = min(c.since, o.since)
			}
		}
		t.startClaim(&c)
		t.askBoth(s.now, &c, holder, d)
		return unverified
	}
	old := list[i]
	old.heard = s.now
	old.advert = c.advert
	old.assigned = old.assigned || c.assigned
	if uses := s.uses(holder.address(c.key.ip)); uses && !old.used { // it may answer from now on
		old.used, old.asked = true, 0
		t.judging.moveUp(s.now)
	}
	if old.refused != 0 && old.refused <= s.now && old.first != 0 && !s.answer { // it claims anew
		old.refused, old.first, old.since, old.asked, old.answered = 0, 0, s.now, 0, false
		t.askBoth(s.now, old, holder, d)
		return unverified
	}
	old.answered = old.answered || s.answer
	return t.resolve(s.now, old, d)
}

// endOldestClaim ends the claim that was silent for longest, if that is longer than
// Verify, so that a moving host can make another. It returns the others.
func (t *table) endOldestClaim(now int64, list []*claim, holder *host, d *flow.Decision) []*claim {
	oldest := slices.MinFunc(list, func(a, b *claim) int { return cmp.Compare(a.heard, b.heard) })
	if oldest.refused != 0 || now-oldest.heard <= int64(t.cfg.Verify) {
		return list
	}
	t.release(oldest, holder, d)
	t.forget(oldest)
	return t.claims[oldest.key]
}

// askBoth asks the holder and the claimant, each where it is.
func (t *table) askBoth(now int64, c *claim, holder *host, d *flow.Decision) {
	c.asked++
	c.last = now
	t.judging.moveUp(now + int64(t.cfg.Verify)/2)
	t.questions.ask(holder, c.key.ip, d)
	if ip := holder.address(c.key.ip); ip.IsValid() {
		t.questions.askAt(c.at, c.by, ip, c.used, d)
	}
}

// resolve decides a claim: it is accepted, spoofed, or still unverified or
// quarantined.
func (t *table) resolve(now int64, c *claim, d *flow.Decision) refusal {
	h := t.host(c.key.who)
	if h == nil || c.key.ip.IsValid() && h.has(c.key.ip) == nil {
		t.forget(c)
		return accepted
	}
	if c.refused != 0 && c.first == 0 {
		if c.refused <= now {
			t.forget(c)
		}
		return spoofed
	}
	heard := h.seen.Load()
	if c.key.ip.IsValid() {
		heard = h.has(c.key.ip).confirmed
	}
	verify, hold := int64(t.cfg.Verify), int64(t.cfg.Hold)
	switch {
	case heard > c.since:
		t.deny(now, c, h, d)
		return spoofed
	case !h.at.Load().isReachable():
		return t.grantClaim(now, c, h, d)
	case c.first != 0 && (c.asked < 2 || now-c.last < verify/2):
		return spoofed
	case c.asked < 2 || now-c.last < verify/2:
		return unverified
	case h.answers && (c.answered || c.assigned), c.first == 0 && c.heard-c.since >= hold:
		return t.grantClaim(now, c, h, d)
	case c.first != 0:
		if now-c.first >= int64(t.cfg.Age) {
			t.forget(c)
		}
		return spoofed
	case now-c.heard > hold:
		t.release(c, h, d)
		t.forget(c)
	case !c.waiting:
		t.quarantine(c, h, d)
	}
	return quarantined
}

// deny refuses a claimant for Penalty, because the holder was heard.
func (t *table) deny(now int64, c *claim, h *host, d *flow.Decision) {
	if c.first == 0 {
		c.refused = now + int64(t.cfg.Penalty)
		if c.key.ip.IsValid() {
			c.first = now
		}
	}
	c.since, c.asked, c.answered = now, 2, false // until both are asked again
	t.judging.moveUp(now)
	if c.waiting {
		t.notify(c, h, "refused")
	}
	t.release(c, h, d)
}

// grantClaim gives the claimant the address or place that it claims.
func (t *table) grantClaim(now int64, c *claim, h *host, d *flow.Decision) refusal {
	waited, event := c.waiting, c.event(h, "taken")
	t.endClaims(c.key, h, d)
	why := t.moveToClaimant(now, c, h)
	if waited && why == accepted {
		t.publish(event)
	}
	return why
}

// moveToClaimant moves a host, or its address, to a claimant.
func (t *table) moveToClaimant(now int64, c *claim, h *host) refusal {
	if !c.key.ip.IsValid() {
		return t.resettle(now, h, c.at)
	}
	claimant := t.host(c.by)
	if claimant == nil || claimant.at.Load().Location != c.at {
		return unverified
	}
	t.strip(h, c.key.ip)
	t.former.startProbation(h.id, c.key.ip, now+int64(t.cfg.Probation))
	return t.grant(now, claimant, c.key.ip, c.used, c.advert)
}

// startClaim records a new claim.
func (t *table) startClaim(c *claim) {
	t.claims[c.key] = append(t.claims[c.key], c)
	t.claimedAt[c.at]++
}

// forget ends one claim.
func (t *table) forget(c *claim) {
	list := t.claims[c.key]
	i := slices.Index(list, c)
	if i < 0 {
		return
	}
	t.removeClaim(c.at)
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(t.claims, c.key)
	} else {
		t.claims[c.key] = list
	}
}

// removeClaim decrements the number of claims at a port.
func (t *table) removeClaim(at flow.Location) {
	if t.claimedAt[at]--; t.claimedAt[at] > 0 {
		return
	}
	delete(t.claimedAt, at)
	if p := t.places.placeAt(at); p != nil {
		t.places.scheduleRemoval(p)
	}
}

// decideClaims decides the claims that are due, and probes again: once after half of
// Verify, and at intervals in quarantine.
func (t *table) decideClaims(now int64, d *flow.Decision) {
	verify, hold := int64(t.cfg.Verify), int64(t.cfg.Hold)
	for _, list := range t.claims {
		for _, c := range slices.Clone(list) {
			switch t.resolve(now, c, d) {
			case unverified:
				if c.asked == 0 || c.asked == 1 && now-c.last >= verify/2 {
					t.askBoth(now, c, t.host(c.key.who), d)
				}
				t.judging.moveUp(c.last + verify/2)
			case quarantined:
				if again := max(verify, hold/quarantineQuestions); now-c.last >= again {
					if h := t.host(c.key.who); h != nil {
						t.askBoth(now, c, h, d)
					}
				} else {
					t.judging.moveUp(c.last + again)
				}
			case spoofed:
				t.askAgain(now, c, d)
			}
		}
	}
}

// askAgain asks both sides of a claim that was wrong: twice in a row, every second
// at first and more rarely the older the claim is.
func (t *table) askAgain(now int64, c *claim, d *flow.Decision) {
	if c.first == 0 {
		if c.refused > now {
			t.judging.moveUp(c.refused)
		}
		return
	}
	due := c.last + int64(t.cfg.Verify)/2
	if c.asked >= 2 {
		due = c.last + max(int64(time.Second), (now-c.first)/8)
	}
	if h := t.host(c.key.who); now >= due && h != nil && slices.Contains(t.claims[c.key], c) {
		if c.asked >= 2 {
			c.asked, c.since, c.answered = 0, now, false
		}
		t.askBoth(now, c, h, d)
		return
	}
	t.judging.moveUp(due)
}
