package balancer

import (
	"hash/fnv"
	"math"
	"net/netip"
	"time"
)

// choose returns the member for a new connection of a client, nil if none can
// serve. fits reports whether a member is reachable and has room for this client.
// It is called with the balancer's mu held.
func (v *vip) choose(client netip.Addr, now int64, fits func(*member) bool) *member {
	if s, ok := v.stuck[client]; ok {
		if now < s.until && s.m.wish == serve && s.m.health.verdict != bad && fits(s.m) {
			return s.m
		}
		delete(v.stuck, client)
	}
	for _, suspect := range [...]bool{false, true} {
		if m := v.among(client, func(m *member) bool {
			return m.serves() && m.suspect(now) == suspect && fits(m)
		}); m != nil {
			return m
		}
	}
	return nil
}

// answerTime is how long a member has to answer its first check before others are
// chosen rather than it.
const answerTime = 200 * time.Millisecond

// suspect reports whether a member has not answered its first check, or not well:
// others are chosen before it. Until then it counts as good, so that it does not
// matter whose answer comes first.
func (m *member) suspect(now int64) bool {
	h := &m.health
	waits := h.ends != 0 && now > h.ends-int64(m.vip.check.timeout)+int64(answerTime)
	return m.grade() == unknown && (h.row > 0 || waits)
}

// serves reports whether a member may get connections, once it is reached.
func (m *member) serves() bool { return m.wish == serve && m.grade() != bad }

// grade returns the verdict on a member: without checks all are good.
func (m *member) grade() verdict {
	if m.vip.check.kind == checkNone {
		return good
	}
	return m.health.verdict
}

// among applies the policy to the candidates of the lowest priority.
func (v *vip) among(client netip.Addr, candidate func(*member) bool) (best *member) {
	tier := math.MaxInt
	for _, m := range v.pool {
		if m.tier < tier && candidate(m) {
			tier = m.tier
		}
	}
	may := func(m *member) bool { return m.tier == tier && candidate(m) }
	switch v.policy {
	case least:
		for _, m := range v.pool {
			if may(m) && (best == nil || m.live*best.weight < best.live*m.weight) {
				best = m
			}
		}
	case hashed:
		top := math.Inf(-1)
		for _, m := range v.pool {
			if s := score(client, m); may(m) && s > top {
				best, top = m, s
			}
		}
	default: // smooth weighted round robin: each is chosen in proportion, spread evenly
		sum := 0
		for _, m := range v.pool {
			if !may(m) {
				continue
			}
			sum += m.weight
			m.current += m.weight
			if best == nil || m.current > best.current {
				best = m
			}
		}
		if best != nil {
			best.current -= sum
		}
	}
	return best
}

// score is a member's claim on a client (weighted rendezvous hashing): the
// client goes to the highest, and when members come or go only those clients
// move that have to.
func score(client netip.Addr, m *member) float64 {
	h := fnv.New64a()
	a, b := client.As16(), m.addr.Addr.As16()
	h.Write(a[:])
	h.Write(b[:])
	h.Write([]byte{byte(m.port >> 8), byte(m.port)})
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	u := (float64(x>>11) + 0.5) / (1 << 53)
	return float64(m.weight) / -math.Log(u)
}
