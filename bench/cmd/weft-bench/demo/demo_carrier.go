package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/nodes"

	"github.com/weft-sdn/weft/lab/topology"
)

// carrierLab is the name of the lab of hybrid nodes, and carrierDPID what is added to the
// numbers of its switches, which the controller has beside those of the demo's lab.
const (
	carrierLab  = "demo-carrier"
	carrierDPID = 0x100
)

// showCarrier has hybrid nodes come up, route and reach the controller by their own
// links, a circuit between two customers, and a link of it cut.
func (d features) showCarrier(ctx context.Context) (figure string, err error) {
	exe, err := companion.Find("weft")
	if err != nil {
		return "", err
	}
	topo := topology.OSHI()
	for i := range topo.Switches {
		topo.Switches[i].DPID = carrierDPID + topology.DPID(i+1)
	}
	began := time.Now()
	c, err := lab.Up(ctx, topo, lab.Options{
		Temporary: true, Name: carrierLab, Controllers: []string{"tcp:" + d.listen}, Weft: exe,
		KeeperCommand: []string{"env", "WEFT_SERVER=" + d.server(), exe, "lab", "keeper"}, // to whom nodes are reported
	})
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, c.Down(context.WithoutCancel(ctx)))
		for i := range topo.Switches {
			d.undo(ctx, "switch", "forget", topo.Switches[i].DPID.String())
		}
	}()
	if err := d.awaitCarrier(ctx, c); err != nil {
		return "", err
	}
	ready := time.Since(began)
	table, err := d.weft(ctx, "lab", "nodes", "--name", carrierLab)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(d.out, inset(strings.TrimSpace(table)))
	const customer, other = "red1", "red3"
	ends := make([]string, 2)
	for i, name := range []string{customer, other} {
		h, err := c.Host(name)
		if err != nil {
			return "", err
		}
		ends[i] = fmt.Sprintf("%s:%d", h.Switch, h.Port)
	}
	defer d.undo(ctx, "l2vpn", "delete", "red")
	if _, err := d.weft(ctx, "l2vpn", "add", "red", ends[0], ends[1], "--protect"); err != nil {
		return "", err
	}
	return d.carried(ctx, c, customer, other, ready)
}

// awaitCarrier waits until the nodes route and the controller knows them.
func (d features) awaitCarrier(ctx context.Context, c *lab.Lab) error {
	return until(ctx, 60*time.Second, "all nodes routing, and known", func() (bool, error) {
		all, err := c.Nodes(ctx)
		if err != nil || slices.ContainsFunc(all, func(n nodes.NodeStatus) bool {
			return n.OSPFFull != n.OSPFExpected || n.Dark || n.Control != "connected"
		}) {
			return false, err
		}
		known := 0
		err = d.Ask(ctx, func(n *cli.Controller) error {
			links, err := n.ListLinks(n.Ctx, &api.ListLinksRequest{})
			for _, s := range c.Topology().Switches {
				known += count(links.GetLinks(), func(l *api.Link) bool { return l.State == "up" && l.GetSrc().GetDpid() == s.DPID.String() })
			}
			return err
		})
		return known == 2*len(c.Topology().Links), err
	})
}

// circuit is what weft l2vpn get says.
type circuit struct {
	State  string   `json:"state"`
	Reason string   `json:"reason"`
	Path   []string `json:"path"`
}

// circuitNow asks how a circuit is.
func (d features) circuitNow(ctx context.Context, name string) (of circuit, err error) {
	text, err := d.command(ctx, nil, "l2vpn", "get", name, "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(text), &of)
	}
	return of, err
}

// carried pings through the circuit, and cuts a link of its path meanwhile.
func (d features) carried(ctx context.Context, c *lab.Lab, from, to string, ready time.Duration) (string, error) {
	var of circuit
	if err := until(ctx, 20*time.Second, "the circuit up, and pinged through", func() (bool, error) {
		var err error
		if of, err = d.circuitNow(ctx, "red"); err != nil || of.State != "up" || len(of.Path) < 2 {
			return false, err
		}
		r, err := c.Ping(ctx, from, to, traffic.PingOptions{Count: 3, Interval: 50 * time.Millisecond})
		return r.Lost() == 0, err
	}); err != nil {
		return "", fmt.Errorf("%w: it is %s: %s", err, of.State, of.Reason)
	}
	table, err := d.weft(ctx, "l2vpn", "get", "red")
	if err != nil {
		return "", err
	}
	fmt.Fprintln(d.out, inset(strings.TrimSpace(table)))
	name := func(dpid string) string {
		for _, s := range c.Topology().Switches {
			if s.DPID.String() == dpid {
				return s.Name
			}
		}
		return dpid
	}
	result := make(chan traffic.PingResult, 1)
	go func() {
		r, err := c.Ping(ctx, from, to, traffic.PingOptions{Count: 600, Interval: 5 * time.Millisecond})
		if err != nil {
			r.Error = err.Error()
		}
		result <- r
	}()
	time.Sleep(time.Second)
	a, b := name(of.Path[0]), name(of.Path[1])
	fmt.Fprintf(d.out, "         $ weft lab link %s %s down --name %s\n", a, b, carrierLab)
	if err := c.LinkDown(ctx, a, b); err != nil {
		return "", err
	}
	r := <-result
	figure := fmt.Sprintf("%d nodes and %d links in %.1f s; %s to %s every 5 ms, %s-%s cut: %d of %d lost, outage %.0f ms",
		len(c.Topology().Switches), len(c.Topology().Links), ready.Seconds(), from, to, a, b, r.Lost(), r.Sent, r.Outage)
	switch {
	case r.Error != "":
		return figure, errors.New(r.Error)
	case r.Outage > 1000:
		return figure, errors.New("the circuit was out of service for more than a second")
	}
	now, err := d.circuitNow(ctx, "red")
	if err == nil && slices.Equal(now.Path, of.Path) {
		err = fmt.Errorf("the circuit still goes by %s", strings.Join(now.Path, ", "))
	}
	return figure, err
}
