package discovery

import (
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/ratelimit"
	"github.com/weft-sdn/weft/object"
)

// ethTypeBDDP is the type of LLDP-like frames that other controllers broadcast
// to find links across foreign switches. We send none.
const ethTypeBDDP uint16 = 0x8942

// open returns the stage for one switch: it sets the role of the ingress port,
// and consumes every LLDP and BDDP frame, but for LLDP of hosts, and every probe of a function.
func (e *engine) open(sw flow.DPID) func(*flow.PacketIn, *flow.Decision) flow.Verdict {
	e.mu.Lock()
	v := e.topo.datapath(sw).view
	e.mu.Unlock()
	s := newSigner(e.key)
	lost := &portView{} // stands for ports that do not exist
	rates, gap := map[flow.Port]ratelimit.Bucket{}, int64(time.Second)/int64(e.config.Rate)
	return func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
		p := v.port(in.Key.InPort)
		switch in.Key.EthType {
		case flow.EthTypeProbe:
			if in.Key.Probe() {
				e.returns.put(in)
				return flow.Done
			}
		case flow.EthTypeLLDP, ethTypeBDDP:
			if in.Cookie.Owner() == flow.OwnerCircuits { // a customer's; an entry of ours takes what is ours before
				if p != nil {
					in.Role = flow.PortRole(p.role.Load())
				}
				return flow.Next
			}
			number := in.Key.InPort
			if p == nil {
				p, number = lost, 0
			}
			now, why := e.now(), excessive
			rate := rates[number]
			if rate.Take(now, gap, int64(time.Second)/2) {
				why = e.examine(s, now, in)
			}
			rates[number] = rate
			e.record(why, p, in)
			if why == foreign && p != nil && in.Key.EthDst.IsLinkLocal() && flow.PortRole(p.role.Load()) == flow.RoleEdge {
				in.Role = flow.RoleEdge
				return flow.Next // a host that is known may have moved
			}
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

// recordUse records a packet from a port that did not pass this stage, for example
// one that an intake received.
func (e *engine) recordUse(at flow.Location) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.topo.at(at); p != nil && flow.PortRole(p.view.role.Load()) == flow.RoleEdge {
		p.view.host.Store(true)
	}
}

// record counts an LLDP frame, and the reason if it was refused.
func (e *engine) record(why refusal, p *portView, in *flow.PacketIn) {
	if why == accepted {
		e.figures.received.Add(1)
		return
	}
	e.figures.refused[why].Add(1)
	if why == unknown || why == waiting {
		return // genuine, but the port's state is not known yet, or the link is on trial
	}
	if n := p.refused.Add(1); n&(n-1) == 0 && e.lines.Allow() { // 1, 2, 4, 8 …
		e.log.Warn("LLDP refused", "dpid", in.Switch, "port", in.Key.InPort, "reason", why.String(), "refused", n)
	}
}

// examine handles an LLDP frame as evidence of a link, or returns why not.
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
	dst := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	if age := now - sent; age < 0 || age > int64(e.config.MaxAge) {
		e.mu.Lock()
		e.topo.handleStaleProbe(now, src, dst, sent)
		e.mu.Unlock()
		return stale
	}
	e.mu.Lock()
	quiet := e.topo.deadline
	why = e.topo.arrive(now, src, dst, sent)
	look := len(e.topo.events) > 0 || e.topo.deadline < quiet
	e.unlock()
	if look {
		object.Notify(e.wake)
	}
	return why
}
