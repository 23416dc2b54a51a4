package balancer

import (
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// The pause between two rounds of checks.
const checkTick = 50 * time.Millisecond

// advance begins the checks that are due, gives up those without an answer in
// time, and asks for unknown members. It appends the packets to send.
func (b *balancer) advance(now int64, d *flow.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := false
	for _, v := range b.vips.List() {
		b.close(v, now)
		v.hold(b.net, b.tracker, now, d)
		for _, m := range v.all() {
			if m.pooled() {
				changed = b.prober.attend(m, now, d) || changed
			} else if _, known := b.net.find(m.addr); !known {
				b.prober.ask(m, now, d)
			}
		}
	}
	if changed {
		b.vips.Recompute()
	}
}

// answered takes a packet that may be the answer to a check by TCP or HTTP/2.
func (b *balancer) answered(in *flow.PacketIn, d *flow.Decision, src, dst netip.Addr) bool {
	if port := in.Key.TPDst; port < probePortFirst || port >= probePortFirst+probePorts {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	is, changed := b.prober.answered(in, d, src, dst)
	if changed {
		b.vips.Recompute()
	}
	return is
}

// passed takes a member's answer to a VIP's address: of a check by ICMP with its token, or
// by ARP or neighbour solicitation.
func (b *balancer) passed(kind checkKind, from place, to netip.Addr, token uint32, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := false
	for _, v := range b.vips.List() {
		if v.check.kind == kind && v.at.host == object.In(to, from.VLAN) {
			changed = b.prober.passed(v, from, token, now) || changed
		}
	}
	if changed {
		b.vips.Recompute()
	}
}

// close records since when packets for a shadow are led to members. It is called
// with mu held.
func (b *balancer) close(v *vip, now int64) {
	switch {
	case v.host == nil || b.net.open(v):
		v.closed = 0
	case v.closed == 0:
		v.closed = now
		if v.takeover {
			d := &flow.Decision{}
			for c := range v.host.conns {
				b.tracker.cut(d, c)
			}
			b.out.post(d)
		}
	}
}
