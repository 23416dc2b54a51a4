package tunnels

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The paths of a tunnel.
const (
	onPrimary = iota
	onStandby
)

// A tunnel is a tunnel as it is stored. Nobody writes to one that is in the
// store.
type tunnel struct {
	name             string
	from, to         flow.DPID
	protect          bool
	wanted           *api.Tunnel // without what the service gives
	group            uint32
	primary, standby lsp
	optimised        bool           // an optimisation has chosen them
	around           *flow.Location // of a bypass: the link that it leads around
}

// wantedOnly returns a copy of a message without what the service gives.
func wantedOnly(m *api.Tunnel) *api.Tunnel {
	w := proto.CloneOf(m)
	w.Group, w.State, w.Reason, w.Since, w.Active = 0, "", "", "", ""
	w.Path, w.Labels, w.Primary, w.Standby, w.DelayUs, w.Around, w.Optimised = nil, nil, nil, nil, 0, nil, false
	return w
}

// readTunnel returns what a client wants.
func readTunnel(m *api.Tunnel) (*tunnel, error) {
	if err := api.CheckName("name", m.GetName()); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	t := &tunnel{name: m.Name, protect: m.Protect, wanted: wantedOnly(m)}
	for _, end := range []struct {
		key  string
		text *string
		sw   *flow.DPID
	}{{"from", &t.wanted.From, &t.from}, {"to", &t.wanted.To, &t.to}} {
		sw, err := flow.ParseDPID(*end.text)
		if err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%s: %w", end.key, err)
		}
		*end.text, *end.sw = sw.String(), sw
	}
	if t.from == t.to {
		return nil, api.Errorf(codes.InvalidArgument, "from and to are both switch %v: a tunnel needs two", t.from)
	}
	err := checkWanted(t.wanted)
	t.protect = t.protect && !t.overlay() // their routing protects them
	return t, err
}

// parse returns a stored tunnel.
func parse(m *api.Tunnel) (*tunnel, error) {
	t, err := readTunnel(m)
	if err != nil {
		return nil, err
	}
	if flow.GroupOwner(m.Group) != flow.OwnerLabels {
		return nil, api.Errorf(codes.InvalidArgument, "group %#x is not one of tunnels", m.Group)
	}
	t.group, t.optimised = m.Group, m.Optimised
	if t.primary, err = parseLSP(m.Primary, t.from, t.to); err != nil {
		return nil, err
	}
	t.standby, err = parseLSP(m.Standby, t.from, t.to)
	return t, err
}

// message returns the tunnel as it is stored.
func (t *tunnel) message() *api.Tunnel {
	m := proto.CloneOf(t.wanted)
	m.Group, m.Primary, m.Standby, m.Optimised = t.group, t.primary.message(), t.standby.message(), t.optimised
	return m
}

// both returns the primary and the standby path; nil is none.
func (t *tunnel) both() [2]lsp { return [...]lsp{t.primary, t.standby} }

// paths returns the paths that there are, with the active one first.
func (t *tunnel) paths(active int) []lsp {
	list := t.both()
	if active == onStandby {
		list[0], list[1] = list[1], list[0]
	}
	var there []lsp
	for _, p := range list {
		if len(p) > 0 {
			there = append(there, p)
		}
	}
	return there
}

// with returns a copy with other paths.
func (t *tunnel) with(primary, standby lsp) *tunnel {
	c := *t
	c.primary, c.standby = primary, standby
	return &c
}

// equal reports whether two tunnels are stored as the same.
func (t *tunnel) equal(o *tunnel) bool {
	return t != nil && o != nil && proto.Equal(t.message(), o.message())
}

// mpls is the transport of tunnels that are no overlays.
const mpls = "mpls"

// overlaid reports whether a transport is that of an overlay.
func overlaid(transport string) bool { return transport != mpls }

// overlay reports whether a tunnel is wanted as an overlay.
func (t *tunnel) overlay() bool { return overlaid(t.wanted.Transport) }

// overlay reports whether a path leads over tunnel ports.
func (p lsp) overlay() bool { return len(p) == 2 && flow.IsTunnelPort(p[0].out) }
