package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/lab/topology"
)

// readyWait is how long a controller may take to know a network.
const readyWait = 60 * time.Second

// Ready waits until the controller knows all of a lab's network: switches,
// links, which ports have hosts, and the broadcast tree.
func (c *Controller) Ready(ctx context.Context, topo *topology.Topology) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	conns, err := c.dial()
	if err != nil {
		return err
	}
	missing := "nothing was asked yet"
	for {
		now, err := "", error(nil)
		for i, conn := range conns {
			n := network{api.NewSouthboundClient(conn), api.NewDiscoveryClient(conn), api.NewForwardingClient(conn)}
			if now, err = n.missing(ctx, c.share(topo, i)); err != nil || now != "" {
				break
			}
		}
		switch {
		case err == nil && now == "":
			return nil
		case err == nil:
			missing = now
		case ctx.Err() == nil:
			missing = err.Error()
		}
		if err := c.process.Ended(); err != nil {
			return c.Failed(err)
		}
		if backoff.Sleep(ctx, 50*time.Millisecond) != nil {
			return c.Failed(fmt.Errorf("the controller does not know the network: %s: %w", missing, ctx.Err()))
		}
	}
}

// share is what of a network one partition has: its switches, the links between
// them, and the hosts at them, among which are the switches of its neighbours.
func (c *Controller) share(topo *topology.Topology, part int) *topology.Topology {
	if len(c.North) == 1 {
		return topo
	}
	own := map[string]bool{}
	t := &topology.Topology{}
	for _, sw := range topo.Switches {
		if c.config.Plan.PartitionOf(uint64(sw.DPID)) == part {
			own[sw.Name] = true
			t.Switches = append(t.Switches, sw)
		}
	}
	for _, l := range topo.Links {
		switch {
		case own[l.A] && own[l.B]:
			t.Links = append(t.Links, l)
		case own[l.A]:
			t.Hosts = append(t.Hosts, topology.Host{Name: l.B, Switch: l.A, Port: l.APort})
		case own[l.B]:
			t.Hosts = append(t.Hosts, topology.Host{Name: l.A, Switch: l.B, Port: l.BPort})
		}
	}
	for _, h := range topo.Hosts {
		if own[h.Switch] {
			t.Hosts = append(t.Hosts, h)
		}
	}
	return t
}

// network is what of the northbound knows the network.
type network struct {
	southbound api.SouthboundClient
	discovery  api.DiscoveryClient
	forwarding api.ForwardingClient
}

// missing says what the controller does not know yet; nothing if empty.
func (n network) missing(ctx context.Context, topo *topology.Topology) (string, error) {
	switches, err := n.southbound.ListSwitches(ctx, &api.ListSwitchesRequest{})
	if err != nil {
		return "", err
	}
	links, err := n.discovery.ListLinks(ctx, &api.ListLinksRequest{})
	if err != nil {
		return "", err
	}
	roles, err := n.discovery.ListPortRoles(ctx, &api.ListPortRolesRequest{})
	if err != nil {
		return "", err
	}
	flooding, err := n.forwarding.GetFlooding(ctx, &api.GetFloodingRequest{})
	if err != nil {
		return "", err
	}
	up := count(switches.Switches, func(s *api.Switch) bool { return s.Connected })
	linked := count(links.Links, func(l *api.Link) bool { return l.State == "up" })
	edges := count(roles.Ports, func(p *api.PortRole) bool { return p.Role == "edge" })
	switch {
	case up < len(topo.Switches):
		return fmt.Sprintf("%d of %d switches", up, len(topo.Switches)), nil
	case linked < 2*len(topo.Links):
		return fmt.Sprintf("%d of %d links", linked, 2*len(topo.Links)), nil
	case edges < len(topo.Hosts):
		return fmt.Sprintf("%d of %d host ports", edges, len(topo.Hosts)), nil
	case flooding.Committed != flooding.Wanted || len(flooding.Ports) < 2*(len(topo.Switches)-1):
		return "the broadcast tree is not in force", nil
	}
	return "", nil
}

func count[T any](list []T, is func(T) bool) (n int) {
	for _, v := range list {
		if is(v) {
			n++
		}
	}
	return n
}

// SetRule adds a flow entry to each of some switches, all of the first
// partition if there are several, by the northbound and
// returns how long it took until all of them had confirmed it; then it removes
// them. The entry matches nothing that is sent.
func (c *Controller) SetRule(ctx context.Context, switches []topology.DPID, port uint16) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	conns, err := c.dial()
	if err != nil {
		return 0, err
	}
	rules := api.NewFlowrulesClient(conns[0])
	var flows []*api.FlowEntry
	for _, sw := range switches {
		flows = append(flows, &api.FlowEntry{
			Dpid: sw.String(), Priority: flow.PriorityOperator, Actions: []string{"output:1"},
			Match: map[string]string{"eth_type": "0x0800", "ip_proto": "17", "ipv4_dst": "192.0.2.1", "udp_dst": fmt.Sprint(port)},
		})
	}
	began := time.Now()
	answer, err := rules.AddFlows(ctx, &api.AddFlowsRequest{Flows: flows})
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("add a flow entry: %w", err)
	}
	for _, f := range answer.Flows {
		if f.State != "confirmed" {
			return 0, fmt.Errorf("add a flow entry to %s: %s %s", f.Flow.GetDpid(), f.State, f.Reason)
		}
	}
	if _, err := rules.DeleteFlows(ctx, &api.DeleteFlowsRequest{Flows: flows}); err != nil {
		return 0, fmt.Errorf("remove a flow entry: %w", err)
	}
	return took, nil
}
