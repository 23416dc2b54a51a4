// Package trace follows a packet through the flow tables as the switches have them
// now, in thought: nothing is sent. What it knows of the network it asks of a
// Network, which is the northbound's methods.
package trace

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Network is what a trace asks of the controller.
type Network interface {
	FindHost(context.Context, *api.FindHostRequest) (*api.Host, error)
	ListHosts(context.Context, *api.ListHostsRequest) (*api.ListHostsResponse, error)
	ListPorts(context.Context, *api.ListPortsRequest) (*api.ListPortsResponse, error)
	ListLinks(context.Context, *api.ListLinksRequest) (*api.ListLinksResponse, error)
	ListPortRoles(context.Context, *api.ListPortRolesRequest) (*api.ListPortRolesResponse, error)
	ReadFlows(context.Context, *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error)
	ReadGroups(context.Context, *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error)
}

// Packet follows the packet that a request describes.
func Packet(ctx context.Context, n Network, r *api.TracePacketRequest) (*api.PacketTrace, error) {
	a, err := hostNamed(ctx, n, r.GetSrc())
	if err != nil {
		return nil, err
	}
	b, err := hostNamed(ctx, n, r.GetDst())
	if err != nil {
		return nil, err
	}
	frame, what, err := build(r, a, b)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	net, err := read(ctx, n)
	if err != nil {
		return nil, err
	}
	t, err := net.trace(frame, a.host, b.host)
	if err != nil {
		return nil, api.Errorf(api.KindOf(err), "%w", err)
	}
	t.Packet = what
	if !t.Arrives {
		if sw := b.host.At.Flow().Switch; !net.connected(sw) {
			t.Verdict = fmt.Sprintf("%s is known behind switch %v, which is away; %s", b.text, sw, t.Verdict)
		}
		if t.Idle, err = idle(ctx, n); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// NamesHost reports whether a text is an Ethernet or IP address.
func NamesHost(text string) bool {
	_, ipErr := netip.ParseAddr(text)
	_, macErr := flow.ParseMAC(text)
	return ipErr == nil || macErr == nil
}

// end is a host that a packet comes from or goes to.
type end struct {
	text string // as it is named
	host *api.Host
}

func hostNamed(ctx context.Context, n Network, text string) (end, error) {
	if !NamesHost(text) {
		return end{}, api.Errorf(codes.InvalidArgument, "%q: want a host by Ethernet or IP address", text)
	}
	h, err := n.FindHost(ctx, &api.FindHostRequest{Address: text, Vlan: -1})
	if err == nil {
		return end{text, h}, nil
	}
	if api.KindOf(err) != codes.NotFound {
		return end{}, err
	}
	ports, failed := idle(ctx, n)
	if failed != nil || len(ports) == 0 {
		return end{}, err
	}
	const most = 5
	var names []string
	for _, p := range ports[:min(most, len(ports))] {
		names = append(names, (&api.Location{Dpid: p.Dpid, Port: p.Port}).Flow().String())
	}
	text = strings.Join(names, ", ")
	if more := len(ports) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return end{}, api.Errorf(codes.NotFound, "%w; it may be at a port that takes no traffic: %s (%s; to mend it: %s)", err, text, ports[0].Reason, ports[0].Remedy)
}

// idle returns the ports that take no traffic but for those that are down or only
// settling, and those behind which hosts relay; none if discovery is away.
func idle(ctx context.Context, n Network) ([]*api.TraceIdlePort, error) {
	m, err := n.ListPortRoles(ctx, &api.ListPortRolesRequest{})
	switch {
	case api.KindOf(err) == codes.Unavailable:
		return nil, nil
	case err != nil:
		return nil, err
	}
	var list []*api.TraceIdlePort
	for _, p := range m.GetPorts() {
		if slices.Contains([]string{"", "down", "settling", "waiting", "relay"}, p.Cause) {
			continue
		}
		list = append(list, &api.TraceIdlePort{
			Dpid: p.GetAt().GetDpid(), Port: p.GetAt().GetPort(), Role: p.Role, TakesTraffic: p.Role == "edge" || p.Role == "link",
			Cause: p.Cause, Reason: p.Reason, Remedy: p.Remedy, Until: p.Until,
		})
	}
	return list, nil
}

// connected reports whether a switch has a port that is listed.
func (n *network) connected(sw flow.DPID) bool {
	for at := range n.up {
		if at.Switch == sw {
			return true
		}
	}
	return false
}

// read gathers what a trace needs.
func read(ctx context.Context, n Network) (*network, error) {
	w := &network{
		ctx: ctx,
		flows: func(sw flow.DPID) ([]*api.FlowEntry, error) {
			m, err := n.ReadFlows(ctx, &api.ReadFlowsRequest{Dpid: sw.String()})
			return m.GetFlows(), err
		},
		groups: func(sw flow.DPID) ([]*api.Group, error) {
			m, err := n.ReadGroups(ctx, &api.ReadGroupsRequest{Dpid: sw.String()})
			return m.GetGroups(), err
		},
		links: map[flow.Location]flow.Location{}, up: map[flow.Location]bool{}, hosts: map[flow.Location][]*api.Host{},
	}
	ports, err := n.ListPorts(ctx, &api.ListPortsRequest{})
	if err != nil {
		return nil, err
	}
	for _, p := range ports.Ports {
		w.up[(&api.Location{Dpid: p.Dpid, Port: p.Port}).Flow()] = p.Up
	}
	links, err := n.ListLinks(ctx, &api.ListLinksRequest{})
	if err != nil {
		return nil, err
	}
	for _, l := range links.Links {
		w.links[l.Src.Flow()] = l.Dst.Flow()
	}
	hosts, err := n.ListHosts(ctx, &api.ListHostsRequest{})
	if err != nil {
		return nil, err
	}
	for _, h := range hosts.Hosts {
		w.hosts[h.At.Flow()] = append(w.hosts[h.At.Flow()], h)
	}
	return w, nil
}
