package tunnels

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// A bypass leads around a link that tunnels use, from the switch before the link to
// the one after it: one for all tunnels over the link (facility backup,
// RFC 4090 section 3.2). It is a tunnel that the service keeps for itself, in a bucket of its
// own. Frames enter it by the group of the link, which fails over by itself where the
// link's port goes down or its BFD session ends; they come out with the label that they
// would have had over the link.

// bypassMost bounds how many bypasses there are: as many links.
const bypassMost = 100_000

// bypassPorts is the first number of ports without a group of their own.
const bypassPorts = flow.Port(flow.LiveGroup - flow.BypassGroups)

// bypassUser is who keeps bypasses.
const bypassUser = "tunnels"

// bypassName returns the name of the bypass of a link, which no tunnel can have.
func bypassName(at flow.Location) string { return fmt.Sprintf("%v/%d", at.Switch, uint32(at.Port)) }

// newBypass returns the bypass of a link, without a path.
func newBypass(c crossing) *tunnel {
	return &tunnel{name: bypassName(c.at), from: c.at.Switch, to: c.to, group: bypassGroup(c.at.Port), around: &c.at, wanted: &api.Tunnel{
		Name: bypassName(c.at), From: c.at.Switch.String(), To: c.to.String(), Transport: "mpls", User: bypassUser, Around: api.NewLocation(c.at)}}
}

// parseBypass returns a stored bypass.
func parseBypass(m *api.Tunnel) (*tunnel, error) {
	at := m.GetAround().Flow()
	to, err := flow.ParseDPID(m.GetTo())
	switch {
	case err != nil:
		return nil, api.Errorf(codes.InvalidArgument, "to: %w", err)
	case !bypassable(at.Port) || to == at.Switch:
		return nil, api.Errorf(codes.InvalidArgument, "from port %v of switch %v to switch %v there is no link with a bypass", at.Port, at.Switch, to)
	}
	t := newBypass(crossing{at, to})
	t.primary, err = parseLSP(m.Primary, t.from, t.to)
	return t, err
}

// bypassable reports whether a tunnel's frames go around the link after a hop if it
// fails. Bypasses have none themselves, and where a tunnel with two paths begins, its other
// path takes them.
func (t *tunnel) bypassable(p lsp, hop int) bool {
	return t.around == nil && (hop > 0 || !t.protect) && hop < len(p)-1 && bypassable(p[hop].out)
}

// bypassable reports whether the link at a port can have a bypass. Those of tunnel
// ports have none: the nodes' own routing leads around what fails below them.
func bypassable(port flow.Port) bool {
	return port > 0 && port < bypassPorts && !flow.IsTunnelPort(port)
}

// bypassing reports whether a switch can send frames by a bypass: it may begin with the
// port by which they have come in, which takes an action of Open vSwitch. Others have no
// BFD sessions either, so none that are wrong.
func bypassing(sw *api.Switch) bool { return sw.GetHardware() == api.OpenVSwitch }

func bypassGroup(port flow.Port) uint32 { return flow.BypassGroups + uint32(port) }

// byGroup returns the actions of a transit entry with the group of the link instead of
// its output.
func byGroup(acts []flow.Action, out flow.Port) []flow.Action {
	acts = append([]flow.Action{flow.ForgetInPort()}, acts...)
	acts[len(acts)-1] = flow.ToGroup(bypassGroup(out))
	return acts
}

// linkGroup returns the group that sends frames over a link, or by its bypass. It is
// called with mu held.
func (b *store) linkGroup(at flow.Location) flow.Group {
	g := flow.Group{Kind: flow.GroupKindFastFailover, ID: bypassGroup(at.Port), Buckets: []flow.Bucket{
		{WatchPort: at.Port, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.Output(at.Port)}}}}
	if p := b.bypass(at); p != nil {
		g.Buckets = append(g.Buckets, bucket(p))
	}
	return resort(g)
}

// resort adds the last resort to a group: its first bucket, once more, whatever becomes
// of ports. Where all are said to be dead, a BFD session is wrong, or all is lost anyway.
func resort(g flow.Group) flow.Group {
	if len(g.Buckets) > 0 {
		k := g.Buckets[0]
		k.WatchPort, k.WatchGroup = flow.PortAny, flow.LiveGroup
		g.Buckets = append(g.Buckets, k)
	}
	return g
}

func hasResort(g flow.Group) bool {
	return len(g.Buckets) > 0 && g.Buckets[len(g.Buckets)-1].WatchGroup == flow.LiveGroup
}

// liveGroup returns the group that is always live. Open vSwitch takes no bucket that
// watches nothing, except in groups of other types.
func liveGroup() flow.Group {
	return flow.Group{Kind: flow.GroupKindIndirect, ID: flow.LiveGroup, Buckets: []flow.Bucket{{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny}}}
}

// bucket returns the bucket by which frames enter a path.
func bucket(p lsp) flow.Bucket {
	var acts []flow.Action
	if label := p[1].label; label != 0 {
		acts = append(acts, flow.PushMPLS(), flow.SetMPLSLabel(label))
	}
	acts = append(append(acts, address(p, 0)...), flow.Output(p[0].out))
	return flow.Bucket{WatchPort: p[0].out, WatchGroup: flow.GroupAny, Actions: acts}
}

// bypass returns the path around a link that its switch has; nil if there is none,
// or the port leads to several switches. It is called with mu held.
func (b *store) bypass(at flow.Location) lsp {
	s := b.status[bypassName(at)]
	if s == nil || len(s.entered.primary) == 0 || s.entered.primary[0].out == at.Port || len(b.crossed.fars[at]) != 1 || !b.crossed.fars[at][s.entered.to] {
		return nil
	}
	return s.entered.primary
}

// bypassed says in the message of a path which of its links have a bypass. It is
// called with mu held.
func (b *store) bypassed(t *tunnel, m *api.LabelSwitchedPath, p lsp) {
	for i, h := range p {
		if !t.bypassable(p, i) || !bypassing(b.net.Connected(h.sw)) {
			continue
		}
		if way := b.bypass(flow.Location{Switch: h.sw, Port: h.out}); b.whole(way) {
			for _, d := range way {
				m.Hops[i].Bypass = append(m.Hops[i].Bypass, d.sw.String())
			}
		}
	}
}

// kept returns the store that has a tunnel.
func (b *store) kept(t *tunnel) *object.Store[*tunnel] {
	if t.around != nil {
		return b.bypasses
	}
	return b.tunnels
}

// surround gives links their bypasses, still without paths, and takes those away
// that no tunnel needs any more.
func (r *repairer) surround(ctx context.Context) {
	b := r.b
	b.mu.Lock()
	var list []flow.Location
	for at := range b.crossed.stale {
		var old *tunnel
		if s := b.status[bypassName(at)]; s != nil {
			old = s.tunnel
		}
		if b.crossed.around(at, old) != old {
			list = append(list, at)
		}
	}
	clear(b.crossed.stale)
	b.mu.Unlock()
	slices.SortFunc(list, func(x, y flow.Location) int {
		return cmp.Or(cmp.Compare(x.Switch, y.Switch), cmp.Compare(x.Port, y.Port))
	})
	for _, at := range list {
		if _, _, err := b.bypasses.Change(ctx, bypassName(at), func(old *tunnel) (*tunnel, error) { return b.crossed.around(at, old), nil }); err != nil {
			r.log.Warn("bypass of a link not stored; it is tried again", "switch", at.Switch, "port", uint32(at.Port), "error", err)
		}
	}
}
