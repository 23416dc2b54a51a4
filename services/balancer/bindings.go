package balancer

import (
	"maps"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// lasting is how many times its idle timeout a TCP connection, or a pair, is
// remembered after its entries have ended: an open connection may be silent for
// longer, and what comes then is for the member that it was with.
const lasting = 12

// binding is a connection, or a pair, whose entries have ended.
type binding struct {
	to    netip.AddrPort // of the member
	until int64
}

// bindings are the connections and pairs that are remembered, by what the client has.
type bindings map[connKey]binding

// of returns the member that a client's connection or pair was with; false if that is not
// known, or no longer.
func (b bindings) of(k connKey, now int64) (to netip.AddrPort, known bool) {
	x, known := b[k]
	return x.to, known && now < x.until
}

// remember keeps the member of a connection that has ended for lack of packets; as
// many are kept as most.
func (b bindings) remember(c *conn, most int, now int64) {
	if c.key.proto != flow.IPProtoTCP && c.kind != paired || c.kind == direct || c.kind == through || !c.m.pooled() {
		return
	}
	if _, known := b[c.key]; !known && len(b) >= most {
		for k := range b { // any
			delete(b, k)
			break
		}
	}
	b[c.key] = binding{c.to, now + lasting*int64(c.idle)*int64(time.Second)}
}

// expire forgets what is over.
func (b bindings) expire(now int64) {
	maps.DeleteFunc(b, func(_ connKey, x binding) bool { return now >= x.until })
}

// recall returns a connection or a pair whose entries have ended, begun again with
// the member that it was with; nil if that is not known or does not serve.
func (t *tracker) recall(v *vip, key connKey, opening bool, now int64) *conn {
	k, known := key, binding{}
	if !opening {
		known = t.bindings[key]
	}
	if v.paired && !known.to.IsValid() && (!opening || v.rebind) {
		k = key.pair()
		known = t.bindings[k]
	}
	if !known.to.IsValid() || now >= known.until {
		return nil
	}
	m := v.memberAt(known.to)
	if m == nil || m.wish == rest || opening && m.wish != serve || m.grade() == bad {
		return nil
	}
	if _, ok := t.net.reach(m); !ok || len(t.by) >= t.cfg.Load().Connections {
		return nil
	}
	as := tracked
	if k != key && m.wish == serve && t.backs[backKey{known.to, key.client, key.proto, key.vlan}.pair()] == nil {
		as, key = paired, k
	}
	if t.backs[backKey{known.to, key.client, key.proto, key.vlan}] != nil {
		return nil
	}
	delete(t.bindings, k)
	t.count.recalled.Add(1)
	return t.add(as, key, m, known.to, t.nextID(), now)
}

// memberAt returns the member that serves connections at an address and port.
func (v *vip) memberAt(to netip.AddrPort) *member {
	if m := v.member(to); m != nil || v.at.proto != 0 {
		return m
	}
	return v.member(netip.AddrPortFrom(to.Addr(), 0))
}
