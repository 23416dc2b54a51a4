package hosts

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
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
// The silence of a holder counts only if its switch was heard after it (see silences).
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

// claims holds the claims and finds who is right; the table gives a claimant what it
// claims. takeEvents takes mu, all else is called with it held.
type claims struct {
	shared
	places    *places // the table's, as questions
	questions *questions
	silences  *silences
	of        map[claimKey][]*claim
	at        map[flow.Location]int // number of claims made at a port
	due       deadline              // of the next decision or question
	events    []*api.HostClaimed    // to be published
	lost      uint64                // events that were not, because too many waited
}

func newClaims(with shared, p *places, q *questions, silent *silences) claims {
	return claims{shared: with, places: p, questions: q, silences: silent, of: map[claimKey][]*claim{}, at: map[flow.Location]int{}, due: math.MaxInt64}
}

const (
	maxClaims    = 4096 // claims at a time
	maxClaimants = 4    // of one host or address
)

// contest handles a claim against a holder that may be alive, and judges it if it was made
// before.
func (s *claims) contest(by sighting, c claim, holder *host, d *flow.Decision) (refusal, *claim) {
	list := s.of[c.key]
	i := slices.IndexFunc(list, func(o *claim) bool { return o.by == c.by && o.at == c.at })
	if i < 0 {
		// A port has only one claimant, so that hosts behind one port cannot
		// fill the list.
		if j := slices.IndexFunc(list, func(o *claim) bool { return o.at == c.at && o.refused == 0 }); j >= 0 {
			s.release(list[j], holder, d)
			s.forget(list[j])
			list = s.of[c.key]
		}
		if len(list) >= maxClaimants {
			list = s.endOldest(by.now, list, holder, d)
		}
		if len(list) == 0 && len(s.of) >= maxClaims || len(list) >= maxClaimants {
			s.reached.Reach(by.now, "the room for claims of hosts", maxClaims, "port "+placeText(by.at))
			return tableLimit, nil
		}
		c.since, c.heard = by.now, by.now
		c.used = by.uses(holder.address(c.key.ip))
		for _, o := range list { // it was elsewhere before, and the holder not heard since
			if o.by == c.by && o.refused == 0 {
				c.since = min(c.since, o.since)
			}
		}
		s.start(&c)
		s.askBoth(by.now, &c, holder, d)
		return unverified, nil
	}
	old := list[i]
	old.heard = by.now
	old.advert = c.advert
	old.assigned = old.assigned || c.assigned
	if uses := by.uses(holder.address(c.key.ip)); uses && !old.used { // it may answer from now on
		old.used, old.asked = true, 0
		s.due.moveUp(by.now)
	}
	if old.refused != 0 && old.refused <= by.now && old.first != 0 && !by.answer { // it claims anew
		old.refused, old.first, old.since, old.asked, old.answered = 0, 0, by.now, 0, false
		s.askBoth(by.now, old, holder, d)
		return unverified, nil
	}
	old.answered = old.answered || by.answer
	return s.judge(by.now, old, d)
}

// endOldest ends the claim that was silent for longest, if that is longer than
// Verify, so that a moving host can make another. It returns the others.
func (s *claims) endOldest(now int64, list []*claim, holder *host, d *flow.Decision) []*claim {
	oldest := slices.MinFunc(list, func(a, b *claim) int { return cmp.Compare(a.heard, b.heard) })
	if oldest.refused != 0 || now-oldest.heard <= int64(s.cfg.Verify) {
		return list
	}
	s.release(oldest, holder, d)
	s.forget(oldest)
	return s.of[oldest.key]
}

// askBoth asks the holder and the claimant, each where it is.
func (s *claims) askBoth(now int64, c *claim, holder *host, d *flow.Decision) {
	c.asked++
	c.last = now
	s.due.moveUp(now + int64(s.cfg.Verify)/2)
	s.questions.ask(holder, c.key.ip, d)
	if ip := holder.address(c.key.ip); ip.IsValid() {
		s.questions.askAt(c.at, c.by, ip, c.used, d)
	}
}

// judge decides a claim: it is accepted, spoofed, or still unverified or quarantined. It
// returns the claim if the claimant is to have what it claims.
func (s *claims) judge(now int64, c *claim, d *flow.Decision) (why refusal, won *claim) {
	h := s.index.host(c.key.who)
	if h == nil || c.key.ip.IsValid() && h.has(c.key.ip) == nil {
		s.forget(c)
		return accepted, nil
	}
	if c.refused != 0 && c.first == 0 {
		if c.refused <= now {
			s.forget(c)
		}
		return spoofed, nil
	}
	heard := h.seen.Load()
	if c.key.ip.IsValid() {
		heard = h.has(c.key.ip).confirmed
	}
	verify, hold := int64(s.cfg.Verify), int64(s.cfg.Hold)
	switch {
	case heard > c.since:
		s.deny(now, c, h, d)
		return spoofed, nil
	case !h.at.Load().isReachable():
		return accepted, c
	case c.first != 0 && (c.asked < 2 || now-c.last < verify/2):
		return spoofed, nil
	case c.asked < 2 || now-c.last < verify/2:
		return unverified, nil
	case h.answers && (c.answered || c.assigned), c.first == 0 && c.heard-c.since >= hold:
		switch {
		case s.silences.isHeard(h.at.Load().Switch, c.last+verify/2):
			return accepted, c
		case c.first != 0:
			return spoofed, nil
		case c.waiting:
			return quarantined, nil
		}
		return unverified, nil
	case c.first != 0:
		if now-c.first >= int64(s.cfg.Age) {
			s.forget(c)
		}
		return spoofed, nil
	case now-c.heard > hold:
		s.release(c, h, d)
		s.forget(c)
	case !c.waiting:
		s.quarantine(c, h, d)
	}
	return quarantined, nil
}

// deny refuses a claimant for Penalty, because the holder was heard.
func (s *claims) deny(now int64, c *claim, h *host, d *flow.Decision) {
	if c.first == 0 {
		c.refused = now + int64(s.cfg.Penalty)
		if c.key.ip.IsValid() {
			c.first = now
		}
	}
	c.since, c.asked, c.answered = now, 2, false // until both are asked again
	s.due.moveUp(now)
	if c.waiting {
		s.notify(c, h, "refused")
	}
	s.release(c, h, d)
}

// start records a new claim.
func (s *claims) start(c *claim) {
	s.of[c.key] = append(s.of[c.key], c)
	s.at[c.at]++
}

// forget ends one claim.
func (s *claims) forget(c *claim) {
	list := s.of[c.key]
	i := slices.Index(list, c)
	if i < 0 {
		return
	}
	s.uncount(c.at)
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(s.of, c.key)
	} else {
		s.of[c.key] = list
	}
}

// uncount decrements the number of claims at a port.
func (s *claims) uncount(at flow.Location) {
	if s.at[at]--; s.at[at] > 0 {
		return
	}
	delete(s.at, at)
	if p := s.places.placeAt(at); p != nil {
		s.places.scheduleRemoval(p)
	}
}

// pursue probes again for a claim that is judged: once after half of Verify, and at
// intervals in quarantine.
func (s *claims) pursue(now int64, c *claim, why refusal, d *flow.Decision) {
	verify, hold := int64(s.cfg.Verify), int64(s.cfg.Hold)
	switch why {
	case unverified:
		if c.asked == 0 || c.asked == 1 && now-c.last >= verify/2 {
			s.askBoth(now, c, s.index.host(c.key.who), d)
		}
		s.due.moveUp(c.last + verify/2)
	case quarantined:
		if again := max(verify, hold/quarantineQuestions); now-c.last >= again {
			if h := s.index.host(c.key.who); h != nil {
				s.askBoth(now, c, h, d)
			}
		} else {
			s.due.moveUp(c.last + again)
		}
	case spoofed:
		s.askAgain(now, c, d)
	}
}

// askAgain asks both sides of a claim that was wrong: twice in a row, every second
// at first and more rarely the older the claim is.
func (s *claims) askAgain(now int64, c *claim, d *flow.Decision) {
	if c.first == 0 {
		if c.refused > now {
			s.due.moveUp(c.refused)
		}
		return
	}
	due := c.last + int64(s.cfg.Verify)/2
	if c.asked >= 2 {
		due = c.last + max(int64(time.Second), (now-c.first)/8)
	}
	if h := s.index.host(c.key.who); now >= due && h != nil && slices.Contains(s.of[c.key], c) {
		if c.asked >= 2 {
			c.asked, c.since, c.answered = 0, now, false
		}
		s.askBoth(now, c, h, d)
		return
	}
	s.due.moveUp(due)
}
