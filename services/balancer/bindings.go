package balancer

import (
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

// remember keeps the member of a connection that has ended for lack of packets.
// As many are kept as there may be connections. It is called with mu held.
func (b *balancer) remember(c *conn, now int64) {
	if c.key.proto != flow.IPProtoTCP && c.kind != paired || c.kind == direct || c.kind == through || !c.m.pooled() {
		return
	}
	if _, known := b.bindings[c.key]; !known && len(b.bindings) >= b.cfg.Load().Connections {
		for k := range b.bindings { // any
			delete(b.bindings, k)
			break
		}
	}
	b.bindings[c.key] = binding{c.to, now + lasting*int64(c.idle)*int64(time.Second)}
}

// recall returns a connection or a pair whose entries have ended, begun again with
// the member that it was with; nil if that is not known or does not serve. It is
// called with mu held.
func (b *balancer) recall(v *vip, key connKey, opening bool, now int64) *conn {
	k, known := key, binding{}
	if !opening {
		known = b.bindings[key]
	}
	if v.paired && !known.to.IsValid() && (!opening || v.rebind) {
		k = key.pair()
		known = b.bindings[k]
	}
	if !known.to.IsValid() || now >= known.until {
		return nil
	}
	m := v.memberAt(known.to)
	if m == nil || m.wish == rest || opening && m.wish != serve || m.grade() == bad {
		return nil
	}
	if _, ok := b.net.reach(m); !ok || len(b.table.by) >= b.cfg.Load().Connections {
		return nil
	}
	as := tracked
	if k != key && m.wish == serve && b.table.backs[backKey{known.to, key.client, key.proto, key.vlan}.pair()] == nil {
		as, key = paired, k
	}
	if b.table.backs[backKey{known.to, key.client, key.proto, key.vlan}] != nil {
		return nil
	}
	delete(b.bindings, k)
	b.count.recalled.Add(1)
	return b.table.add(as, key, m, known.to, b.table.nextID(), now)
}

// memberAt returns the member that serves connections at an address and port.
func (v *vip) memberAt(to netip.AddrPort) *member {
	if m := v.member(to); m != nil || v.at.proto != 0 {
		return m
	}
	return v.member(netip.AddrPortFrom(to.Addr(), 0))
}
