package forwarding

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// finder finds paths.
type finder func(*api.FindPathRequest) (*api.FindPathResponse, error)

// errElsewhere says that this process does not know a path, or not yet.
var errElsewhere = errors.New("the path is known elsewhere")

// leave returns what the last switch rewrites in the packets of a pair before
// they leave at a port, given the rewriting of a router, and whether they may
// leave there. There is no routing between virtual networks.
func (pf *platform) leave(p pair, at flow.Location, routed []flow.Action) (rewrite []flow.Action, ok bool) {
	if !p.ip.IsValid() {
		return pf.tagging.Egress(at, p.vlan)
	}
	to := receiver(p, routed).vlan
	_, ok = pf.tagging.Egress(at, to)
	return routed, ok && !pf.tagging.Has(to) && !pf.tagging.Has(p.vlan)
}

// compute returns the route of a pair between two ports; nil if there is no
// path, or the route may not leave there; errElsewhere if the finder does not
// know. Routes of the same pair take the same path in every run.
func (pf *platform) compute(find finder, p pair, from, to flow.Location, rewrite []flow.Action) (*route, error) {
	rewrite, ok := pf.leave(p, to, rewrite)
	if !ok {
		return nil, nil
	}
	r := &route{pair: p, rewrite: rewrite}
	if from.Switch == to.Switch {
		r.hops = []hop{{from.Switch, from.Port, to.Port}}
		return r, nil
	}
	resp, err := find(&api.FindPathRequest{Src: from.Switch.String(), Dst: to.Switch.String(), Hash: p.hash()})
	if err != nil && api.KindOf(err) == codes.Unavailable {
		return nil, errElsewhere
	}
	if err != nil || len(resp.Paths) == 0 {
		return nil, nil
	}
	r.hops = hopsOf(resp.Paths[0], from.Port, to.Port)
	if pf.cfg.FastFailover {
		pf.protect(find, r)
	}
	return r, nil
}

// hopsOf converts a path between the given ports to hops.
func hopsOf(p *api.Path, first, last flow.Port) []hop {
	hops := make([]hop, len(p.Hops))
	for i, h := range p.Hops {
		sw, err := flow.ParseDPID(h.Dpid)
		if err != nil {
			return nil
		}
		hops[i] = hop{sw, flow.Port(h.InPort), flow.Port(h.OutPort)}
	}
	hops[0].in, hops[len(hops)-1].out = first, last
	return hops
}

// protect finds, for every hop, a detour around the next link: a path from that
// switch that begins with another link. Such a path visits the switch once and
// so never crosses the link. A detour ends where it meets an entry of the route
// that leads on without that link. protect leaves out a detour whose entries
// would conflict with others.
func (pf *platform) protect(find finder, r *route) {
	next := make(map[hop]hop, 2*len(r.hops)) // by switch and ingress port
	for _, h := range r.hops {
		next[hop{sw: h.sw, in: h.in}] = h
	}
	r.detours = make([]detour, len(r.hops))
	for i := len(r.hops) - 2; i >= 0; i-- {
		h := r.hops[i]
		resp, err := find(&api.FindPathRequest{Src: h.sw.String(), Dst: r.last().sw.String(), Count: 3, Kind: "disjoint"})
		if err != nil {
			continue
		}
		for _, p := range resp.Paths {
			if flow.Port(p.Hops[0].OutPort) == h.out {
				continue
			}
			path := hopsOf(p, h.in, r.last().out)
			added, ok := graft(next, path[1:])
			if !ok {
				continue
			}
			for _, a := range added {
				next[hop{sw: a.sw, in: a.in}] = a
			}
			r.detours[i] = detour{out: path[0].out, hops: added}
			break
		}
	}
}

// graft returns the hops of a detour that must be added to the existing
// entries. It fails if one of those would lead elsewhere.
func graft(next map[hop]hop, path []hop) (added []hop, ok bool) {
	for _, h := range path {
		if there, taken := next[hop{sw: h.sw, in: h.in}]; taken {
			if there != h {
				return nil, false
			}
			continue
		}
		added = append(added, h)
	}
	return added, true
}
