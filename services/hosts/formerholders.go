package hosts

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// formerKey is an IP address in a VLAN.
type formerKey struct {
	ip   netip.Addr
	vlan uint16
}

// formerHolders records the former holders of addresses, because other hosts may
// still send to their Ethernet addresses. table.mu guards it.
type formerHolders map[formerKey]formerHolder

// formerHolder is a host that had an address.
type formerHolder struct {
	who   id
	at    flow.Location
	until int64 // before then, a packet of the host gets it the address back
}

// maxFormer bounds the addresses with a recorded former holder.
const maxFormer = 1 << 16

// record records that a host no longer has an address.
func (f formerHolders) record(h *host, ip netip.Addr) {
	if len(f) >= maxFormer {
		clear(f)
	}
	f[formerKey{ip, h.id.vlan()}] = formerHolder{who: h.id, at: h.at.Load().Location}
}

// startProbation lets the former holder of an address get it back until a time.
func (f formerHolders) startProbation(who id, ip netip.Addr, until int64) {
	key := formerKey{ip, who.vlan()}
	was := f[key]
	was.until = until
	f[key] = was
}

// isReturn reports whether evidence comes during probation from the former holder
// of an address, at the same place.
func (f formerHolders) isReturn(s sighting, e evidence) bool {
	was, ok := f[formerKey{e.ip, e.who.vlan()}]
	return ok && s.now < was.until && was.who == e.who && s.who == e.who && was.at == s.at
}

// belongedToOther reports whether an address of a host belonged to another Ethernet
// address before.
func (f formerHolders) belongedToOther(now int64, h *host, ip netip.Addr) bool {
	key := formerKey{ip, h.id.vlan()}
	was, ok := f[key]
	if ok && now >= was.until {
		delete(f, key)
	}
	return ok && was.who != h.id
}
