package discovery

import (
	"weft/flow"
)

// ethTypeBDDP is that of LLDP-like frames that other controllers broadcast to
// find links across switches that are not theirs. None of ours.
const ethTypeBDDP uint16 = 0x8942

// open returns the stage for one switch: it sets the role of the ingress port,
// and ends the way of every LLDP and BDDP frame.
func (e *engine) open(sw flow.DPID) func(*flow.PacketIn, *flow.Decision) flow.Verdict {
	e.mu.Lock()
	v := e.topo.datapath(sw).view
	e.mu.Unlock()
	s := newSigner(e.key)
	lost := &portView{} // stands for ports that do not exist
	rates := map[flow.Port]*bucket{}
	return func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
		p := v.port(in.Key.InPort)
		switch in.Key.EthType {
		case flow.EthTypeLLDP, ethTypeBDDP:
			b := rates[in.Key.InPort]
			if p == nil {
				p, b = lost, rates[0]
			}
			if b == nil {
				b = newBucket(e.config.Rate)
				if p == lost {
					rates[0] = b
				} else {
					rates[in.Key.InPort] = b
				}
			}
			e.judge(s, b, p, in)
			return flow.Done
		}
		if p == nil {
			in.Role = flow.RoleUnsettled
			return flow.Next
		}
		in.Role = flow.PortRole(p.role.Load())
		if in.Role == flow.RoleEdge && !p.host.Load() {
			p.host.Store(true)
		}
		return flow.Next
	}
}

// judge takes an LLDP frame as evidence of a link, or counts why not.
func (e *engine) judge(s *signer, b *bucket, p *portView, in *flow.PacketIn) {
	now := e.now()
	why := excessive
	if b.take(now) {
		why = e.examine(s, now, in)
	}
	if why == accepted {
		e.figures.received.Add(1)
		return
	}
	e.figures.refused[why].Add(1)
	if why == unknown {
		return // genuine; the port's coming up, or going down, is not known yet
	}
	if n := p.refused.Add(1); n&(n-1) == 0 { // 1, 2, 4, 8 …
		e.log.Warn("LLDP refused", "dpid", in.Switch, "port", in.Key.InPort, "reason", why.String(), "refused", n)
	}
}

func (e *engine) examine(s *signer, now int64, in *flow.PacketIn) refusal {
	if in.Key.EthType != flow.EthTypeLLDP || in.Key.VLAN != 0 {
		return foreign
	}
	if !in.Key.InPort.Physical() {
		return unknown
	}
	src, sent, why := s.read(in.Data)
	if why != accepted {
		return why
	}
	if age := now - sent; age < 0 || age > int64(e.config.MaxAge) {
		return stale
	}
	dst := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	e.mu.Lock()
	quiet := e.topo.deadline
	why = e.topo.arrive(now, src, dst, sent)
	look := len(e.topo.events) > 0 || e.topo.deadline < quiet
	e.unlock()
	if look {
		poke(e.wake)
	}
	return why
}

// A bucket is a token bucket: rate tokens per second, at most half a second's.
type bucket struct {
	gap  int64 // nanoseconds per token
	full int64 // when it is full again
}

func newBucket(rate int) *bucket { return &bucket{gap: int64(1e9) / int64(rate)} }

// take takes a token, false if there is none.
func (b *bucket) take(now int64) bool {
	full := max(b.full, now) + b.gap
	if full-now > int64(5e8) {
		return false
	}
	b.full = full
	return true
}
