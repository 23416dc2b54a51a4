package balancer

import (
	"maps"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// binding is a connection, or a pair, whose entries have ended, or the member that a client
// without a pair has for its connections to members' own addresses.
type binding struct {
	to    netip.AddrPort // of the member; invalid: the connection was cut, and is to be reset
	until int64
	bound bool // the pair had a binding indication
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
	if c.key.proto != flow.IPProtoTCP && c.kind != paired || c.kind == direct || c.kind == through || !c.m.pooled() || c.bye != nil && c.bye.told {
		return
	}
	x := binding{c.to, now + lasting*int64(c.idle)*int64(time.Second), c.watch.bound}
	if x.bound {
		x.until = max(x.until, now+indicatedTime)
	}
	b.put(c.key, x, most)
}

// put keeps a binding; as many are kept as most.
func (b bindings) put(k connKey, x binding, most int) {
	if _, known := b[k]; !known && len(b) >= most {
		for k := range b { // any
			delete(b, k)
			break
		}
	}
	b[k] = x
}

// expire forgets what is over.
func (b bindings) expire(now int64) {
	maps.DeleteFunc(b, func(_ connKey, x binding) bool { return now >= x.until })
}

// sealIdle is how many seconds without packets an entry back of a client that has
// lost its leave goes on to keep the member's packets from it.
const sealIdle = 60

// seal is such an entry that leads to the controller.
type seal struct {
	vip   netip.AddrPort
	until int64
}

// seals are those entries, by what the member has.
type seals map[backKey]seal

// of returns the seal of a connection, or of the pair that it is of; false if there is none,
// or it is over.
func (s seals) of(k backKey, now int64) (seal, bool) {
	x := s[k]
	if x.until <= now {
		x = s[k.pair()]
	}
	return x, now < x.until
}

// expire forgets what is over.
func (s seals) expire(now int64) {
	maps.DeleteFunc(s, func(_ backKey, x seal) bool { return now >= x.until })
}
