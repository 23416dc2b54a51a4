package trace

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/flow"
)

func Command() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	var p tracePacket
	cmd := &cobra.Command{
		Use:   "trace A B",
		Short: "Follow a packet from host A to host B through the real flow tables",
		Long: `Follow a packet from host A to host B through the flow tables as the switches
have them now: at each switch the entry that matches, its counters and actions,
and where the packet goes from there, until it arrives, or why it does not. Then
it also lists the ports that take no traffic, why, and what would make them.
Nothing is sent. Hosts are named by Ethernet or IP address.

The packet is an ICMP echo request, or whatever the flags make of it. Between
subnets that the controller routes, give the router's address by --eth-dst.
The exit status is not zero if the packet does not arrive.`,
		Example: `  weft trace 10.0.0.1 10.0.0.8
  weft trace fd00::1 fd00::8 --tcp-dst 443
  weft trace 02:00:00:00:00:01 02:00:00:00:00:08 --udp-dst 53 -o json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			a, err := get.HostEndpoint(c, args[0])
			if err != nil {
				return get.WithIdle(c, err)
			}
			b, err := get.HostEndpoint(c, args[1])
			if err != nil {
				return get.WithIdle(c, err)
			}
			for _, e := range []get.Endpoint{a, b} {
				if e.Host == nil {
					return cli.Usagef(cmd, "%s: want a host by Ethernet or IP address", e.Text)
				}
			}
			frame, what, err := p.build(a, b)
			if err != nil {
				return cli.Usagef(cmd, "%v", err)
			}
			net, err := readTraceNetwork(c)
			if err != nil {
				return err
			}
			t, err := net.trace(frame, a.Host, b.Host)
			if err != nil {
				return err
			}
			t.Packet = what
			if !t.Arrives {
				if t.Idle, err = get.ListIdle(c); err != nil {
					return err
				}
			}
			if err := out.Print(cmd, t, func(w *cli.Table) { traceTable(w, t) }); err != nil {
				return err
			}
			if !t.Arrives {
				return errors.New("the packet does not arrive: " + t.Verdict)
			}
			return nil
		},
	}
	r.Flags(cmd)
	p.flags(cmd)
	out.Flag(cmd)
	return cmd
}

// readTraceNetwork gathers what a trace needs.
func readTraceNetwork(c *cli.Controller) (*traceNetwork, error) {
	n := &traceNetwork{
		flows: func(sw flow.DPID) ([]*api.FlowEntry, error) {
			m, err := c.ReadFlows(c.Ctx, &api.ReadFlowsRequest{Dpid: sw.String()})
			return m.GetFlows(), err
		},
		groups: func(sw flow.DPID) ([]*api.Group, error) {
			m, err := c.ReadGroups(c.Ctx, &api.ReadGroupsRequest{Dpid: sw.String()})
			return m.GetGroups(), err
		},
		links: map[flow.Location]flow.Location{}, up: map[flow.Location]bool{}, hosts: map[flow.Location][]*api.Host{},
	}
	ports, err := c.ListPorts(c.Ctx, &api.ListPortsRequest{})
	if err != nil {
		return nil, err
	}
	for _, p := range ports.Ports {
		n.up[(&api.Location{Dpid: p.Dpid, Port: p.Port}).Flow()] = p.Up
	}
	links, err := c.ListLinks(c.Ctx, &api.ListLinksRequest{})
	if err != nil {
		return nil, err
	}
	for _, l := range links.Links {
		n.links[l.Src.Flow()] = l.Dst.Flow()
	}
	hosts, err := c.ListHosts(c.Ctx, &api.ListHostsRequest{})
	if err != nil {
		return nil, err
	}
	for _, h := range hosts.Hosts {
		n.hosts[h.At.Flow()] = append(n.hosts[h.At.Flow()], h)
	}
	return n, nil
}

func traceTable(t *cli.Table, r *traceResult) {
	fmt.Fprintf(t, "%s, enters at %s\n\n", r.Packet, r.Enters)
	t.Row("HOP", "SWITCH", "IN", "TABLE", "PRIORITY", "MATCH", "ACTIONS", "PACKETS", "BYTES", "OWNER", "NEXT")
	var notes []string
	for _, s := range r.Steps {
		next := strings.Join(s.Next, " and ")
		if e := s.Entry; e != nil {
			t.Row(s.Hop, s.Switch, cli.Port(s.InPort), s.Table, e.Priority, cli.MatchText(e.Match), s.Actions, e.Packets, e.Bytes, e.Owner, next)
		} else {
			t.Row(s.Hop, s.Switch, cli.Port(s.InPort), s.Table, "", "no entry matches", "", "", "", "", next)
		}
		for _, n := range s.Notes {
			notes = append(notes, fmt.Sprintf("hop %d, switch %s: %s", s.Hop, s.Switch, n))
		}
	}
	fmt.Fprintln(t)
	for _, n := range notes {
		fmt.Fprintln(t, n)
	}
	for _, p := range r.Idle {
		fmt.Fprintf(t, "%s takes no traffic: %s. To mend it: %s\n", cli.Place(&api.Location{Dpid: p.Switch, Port: p.Port}), p.Reason, p.Remedy)
	}
	if r.Arrives {
		fmt.Fprintln(t, r.Verdict)
	}
}
