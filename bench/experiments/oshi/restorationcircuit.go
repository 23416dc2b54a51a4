package oshi

import (
	"context"
	"fmt"

	"github.com/weft-sdn/weft/api"
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

// ducted has the links of the first edge share a risk: neither is then the bypass of the other.
func (b *bed) ducted(ctx context.Context) error {
	conn, err := b.control.Northbound()
	if err != nil {
		return err
	}
	for _, l := range b.topo.Links {
		if l.A != "pe1" {
			continue
		}
		a, err := b.SwitchDPID(l.A)
		if err != nil {
			return err
		}
		z, err := b.SwitchDPID(l.B)
		if err != nil {
			return err
		}
		_, err = api.NewDiscoveryClient(conn).SetLink(ctx, &api.SetLinkRequest{A: &api.Location{Dpid: a.String(), Port: uint32(l.APort)},
			B: &api.Location{Dpid: z.String(), Port: uint32(l.BPort)}, Settings: &api.LinkSettings{RiskGroups: []string{"duct"}}})
		if err != nil {
			return err
		}
	}
	return nil
}

// restoredCircuit makes a case's circuit.
func (b *bed) restoredCircuit(ctx context.Context, by string) error {
	conn, err := b.control.Northbound()
	if err != nil {
		return err
	}
	of := &api.Circuit{Name: by, Protect: by == byGroup}
	a, z := restored(by)
	for _, customer := range []string{a, z} {
		host, err := b.Host(customer)
		if err != nil {
			return err
		}
		dpid, err := b.SwitchDPID(host.Switch)
		if err != nil {
			return err
		}
		of.Ends = append(of.Ends, fmt.Sprintf("%v:%d", dpid, host.Port))
	}
	answer, err := api.NewL2VpnClient(conn).SetCircuits(ctx, &api.SetCircuitsRequest{Circuits: []*api.Circuit{of}})
	if err != nil {
		return err
	}
	for _, o := range answer.Outcomes {
		if o.Error != "" {
			return fmt.Errorf("circuit %s: %s", o.Name, o.Error)
		}
	}
	return b.circuitUp(ctx, by)
}

// circuitNow is how a case's circuit is.
func (b *bed) circuitNow(ctx context.Context, by string) (*api.Circuit, error) {
	conn, err := b.control.Northbound()
	if err != nil {
		return nil, err
	}
	return api.NewL2VpnClient(conn).GetCircuit(ctx, &api.GetCircuitRequest{Name: by})
}

// circuitUp waits until a case's circuit is up, a protected one with both paths.
func (b *bed) circuitUp(ctx context.Context, by string) error {
	return until(ctx, settleTime, func() (string, error) {
		c, err := b.circuitNow(ctx, by)
		if err != nil || c.State == "up" {
			return "", err
		}
		return fmt.Sprintf("circuit %s is %s: %s", c.Name, c.State, c.Reason), nil
	})
}

// circuitLink is the link on the path of a case's circuit that is to fail: the first, or
// for a bypass the second.
func (b *bed) circuitLink(ctx context.Context, by string) (near, next string, err error) {
	c, err := b.circuitNow(ctx, by)
	if err != nil {
		return "", "", err
	}
	at := 0
	if by == byBypass {
		at = 1
	}
	if len(c.Path) < at+2 {
		return "", "", fmt.Errorf("circuit %s has the path %v, want one with a link %d", c.Name, c.Path, at+1)
	}
	for _, s := range b.topo.Switches {
		switch s.DPID.String() {
		case c.Path[at]:
			near = s.Name
		case c.Path[at+1]:
			next = s.Name
		}
	}
	if near == "" || next == "" {
		return "", "", fmt.Errorf("circuit %s goes by %v, which are not all switches of the lab", c.Name, c.Path)
	}
	return near, next, nil
}
