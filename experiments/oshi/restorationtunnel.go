package oshi

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
)

// known waits until the controller knows all switches and links.
func (b *bed) known(ctx context.Context) error {
	conn, err := b.control.Northbound()
	if err != nil {
		return err
	}
	discovery := api.NewDiscoveryClient(conn)
	err = until(ctx, settleTime, func() (string, error) {
		links, err := discovery.ListLinks(ctx, &api.ListLinksRequest{})
		if err != nil {
			return "", err
		}
		up := 0
		for _, l := range links.Links {
			if l.State == "up" {
				up++
			}
		}
		if up == 2*len(b.topo.Links) {
			return "", nil
		}
		return fmt.Sprintf("the controller knows %d of %d links", up, 2*len(b.topo.Links)), nil
	})
	if err != nil {
		return b.control.Failed(err)
	}
	return nil
}

// tunnelNames are the names of a case's tunnels, there and back.
func tunnelNames(by string) [2]string { return [2]string{by + "-there", by + "-back"} }

// tunnelled makes the tunnels of a case, and the circuit in them.
func (b *bed) tunnelled(ctx context.Context, by string) error {
	conn, err := b.control.Northbound()
	if err != nil {
		return err
	}
	a, z := restored(by)
	label := labelEoMPLS + 10*slices.Index(restorers(), by)
	var flows []*api.FlowEntry
	for i, end := range [2][4]string{{a, "pe1", "pe2", z}, {z, "pe2", "pe1", a}} {
		var dpids [2]lab.DPID
		for k, sw := range end[1:3] {
			if dpids[k], err = b.SwitchDPID(sw); err != nil {
				return err
			}
		}
		t, err := api.NewTunnelsClient(conn).SetTunnel(ctx, &api.SetTunnelRequest{Tunnel: &api.Tunnel{
			Name: tunnelNames(by)[i], From: dpids[0].String(), To: dpids[1].String(), Protect: by == byGroup,
		}})
		if err != nil {
			return err
		}
		in, out, number := fmt.Sprint(b.port(end[1], end[0])), fmt.Sprint(b.port(end[2], end[3])), fmt.Sprint(label+i)
		for _, eth := range []string{"0x8847", "0x8848"} { // Open vSwitch 3.1 ends itself where it encapsulates these
			flows = append(flows, &api.FlowEntry{Dpid: dpids[0].String(), Priority: flow.PriorityOperator + 1, Match: map[string]string{"in_port": in, "eth_type": eth}})
		}
		flows = append(flows,
			&api.FlowEntry{Dpid: dpids[0].String(), Priority: flow.PriorityOperator, Match: map[string]string{"in_port": in},
				Actions: []string{"encap(mpls)", "set_field:" + number + "->mpls_label", "encap(ethernet)", fmt.Sprint("group:", t.Group)}},
			&api.FlowEntry{Dpid: dpids[1].String(), Table: uint32(flow.TableLabels), Priority: flow.PriorityOperator,
				Match:   map[string]string{"eth_type": "0x8847", "mpls_label": number, "mpls_bos": "1"},
				Actions: []string{"decap()", "decap(packet_type(ns=0,type=0))", "output:" + out}})
	}
	answer, err := api.NewFlowrulesClient(conn).AddFlows(ctx, &api.AddFlowsRequest{Flows: flows})
	if err != nil {
		return err
	}
	for _, f := range answer.Flows {
		if f.State != "confirmed" {
			return fmt.Errorf("add a flow entry to %s: %s %s", f.Flow.GetDpid(), f.State, f.Reason)
		}
	}
	return b.tunnelsUp(ctx)
}

// tunnels returns the tunnels by name.
func (b *bed) tunnels(ctx context.Context) (map[string]*api.Tunnel, error) {
	conn, err := b.control.Northbound()
	if err != nil {
		return nil, err
	}
	answer, err := api.NewTunnelsClient(conn).ListTunnels(ctx, &api.ListTunnelsRequest{})
	if err != nil {
		return nil, err
	}
	all := map[string]*api.Tunnel{}
	for _, t := range answer.Tunnels {
		all[t.Name] = t
	}
	return all, nil
}

// tunnelsUp waits until all tunnels are up, those with two paths with both.
func (b *bed) tunnelsUp(ctx context.Context) error {
	return until(ctx, settleTime, func() (string, error) {
		all, err := b.tunnels(ctx)
		for _, t := range all {
			if t.State != "up" {
				return fmt.Sprintf("tunnel %s is %s: %s", t.Name, t.State, t.Reason), err
			}
		}
		return "", err
	})
}

// tunnelHop is the node after the first edge on the path of a case's tunnel there.
func (b *bed) tunnelHop(ctx context.Context, by string) (string, error) {
	all, err := b.tunnels(ctx)
	if err != nil {
		return "", err
	}
	path := all[tunnelNames(by)[0]].GetPath()
	if len(path) < 2 {
		return "", fmt.Errorf("tunnel %s has no path", tunnelNames(by)[0])
	}
	for _, s := range b.topo.Switches {
		if s.DPID.String() == path[1] {
			return s.Name, nil
		}
	}
	return "", fmt.Errorf("tunnel %s goes by %s, which is no switch of the lab", tunnelNames(by)[0], path[1])
}
