package oshi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/test/testbed"
)

// Who restores a customer's connection.
const (
	byOSPF       = "OSPF"
	byBFD        = "OSPF with BFD"
	byController = "controller" // a tunnel with one path
	byGroup      = "group"      // a tunnel with a standby path
	byBypass     = "bypass"     // a tunnel with one path; a link behind its first switch fails
)

// circuited reports whether the customers of a case have a circuit.
func circuited(by string) bool { return by == byController || by == byGroup || by == byBypass }

// The ways in which a link fails.
const (
	byCarrier = "carrier" // both ends see it
	bySilence = "silent"  // nobody does
)

// failure is a way to fail, for how long the stream goes on then, and the marks of
// those that restore.
type failure struct {
	name  string
	after time.Duration
	marks map[string]float64 // ms
}

func failures() []failure {
	return []failure{
		{byCarrier, 3 * time.Second, map[string]float64{byOSPF: 200, byBFD: 200, byController: 100, byGroup: 20, byBypass: 20}},
		{bySilence, 9 * time.Second, map[string]float64{byBFD: 500, byGroup: 250, byBypass: 250}},
	}
}

// How often the customer sends, and how long before the link fails.
const (
	pingEvery = 5 * time.Millisecond
	pingFirst = time.Second
)

func restorers() []string { return []string{byOSPF, byBFD, byController, byGroup, byBypass} }

func restoration() experiments.Experiment {
	return experiments.Experiment{
		Name: "oshi-restoration", Title: "how long a customer is without service when a link fails, by who restores it",
		Paper: paper, Figure: "section III",
		Claim: `Fast restoration is one of the three main services of the architecture; the paper measures none. (Weft's own marks are in the table.)`,
		Method: fmt.Sprintf(`Two edges, joined by a core, by two other cores, and these joined, hybrid nodes with Weft in band. A customer
pings another every %v; the first link of the path in use, or the second where that is said, fails a second later, by carrier, which both ends see, or silently. outage_ms: the longest run of
pings without an answer. OSPF: best effort, hello 1 s, dead after 4 s, the carrier mirrored to the node's routing. OSPF with BFD: every
50 ms, in a lab of its own, without a controller. controller: a circuit with one path (weft l2vpn add), for which the controller finds another; the links of the first edge share a
risk group, so that its link has no bypass. group: one with a standby path (--protect). bypass: one with one path, of which not the first link but
the second fails; the core before it sends frames around. Weft's nodes ask each other by BFD on the links, every 50 ms.`, pingEvery),
		Deviation: `The paper leaves restoration to routing for best effort and has none for circuits.`,
		Runs:      10, QuickRuns: 2, Transports: []string{"grpc"},
		Columns: []string{"failure", "sent", "lost", "outage_ms"},
		Cases: func(experiments.Parameters) (list []experiments.Case) {
			controlled := &common{Open: openControlled}
			alone := &common{Open: func(ctx context.Context) (*bed, error) {
				t := restorationTopology()
				t.Routing.BFD = topology.Delay(50 * time.Millisecond)
				return openBed(ctx, "restoration-bfd", t, nil)
			}}
			for _, by := range restorers() {
				from := controlled
				if by == byBFD {
					from = alone
				}
				list = append(list, use(from, by, func(ctx context.Context, b *bed) error { return b.connect(ctx, by) },
					func(ctx context.Context, b *bed) ([][]string, error) { return b.restorations(ctx, by) }))
			}
			return list
		},
		Lasting: true, Sum: sumRestoration,
	}
}

// restored are the customers of a case.
func restored(by string) (string, string) {
	name := map[string]string{byOSPF: "ip", byBFD: "ip", byController: "single", byGroup: "standby", byBypass: "bypass"}[by]
	return name + "1", name + "2"
}

// restorationTopology has a short way between the edges and a longer one.
func restorationTopology() *topology.Topology {
	t := &topology.Topology{Routing: topology.Routing{IPv4Only: true}, Control: topology.Control{Mode: topology.ControlInBand, At: "cr2"}}
	for _, name := range []string{"pe1", "pe2", "cr1", "cr2", "cr3"} {
		t.Switches = append(t.Switches, topology.Switch{Name: name, Kind: topology.KindHybrid})
	}
	for _, l := range [][2]string{{"pe1", "cr1"}, {"cr1", "pe2"}, {"pe1", "cr2"}, {"cr2", "cr3"}, {"cr3", "pe2"}, {"cr1", "cr2"}, {"cr1", "cr3"}} {
		t.Links = append(t.Links, topology.Link{A: l[0], B: l[1]})
	}
	for _, by := range []string{byOSPF, byController, byGroup, byBypass} {
		a, z := restored(by)
		t.Hosts = append(t.Hosts, topology.Host{Name: a, Switch: "pe1", Gateway: by == byOSPF}, topology.Host{Name: z, Switch: "pe2", Gateway: by == byOSPF})
	}
	return t
}

// openControlled is that network with a controller as a user has it.
func openControlled(ctx context.Context) (*bed, error) {
	control, err := testbed.Start(ctx, testbed.Config{CPU: -1})
	if err != nil {
		return nil, err
	}
	b, err := openBed(ctx, "restoration", restorationTopology(), control)
	if err != nil {
		control.Stop()
	}
	return b, err
}

// connect makes the customers' circuit, if it is one, and waits until it carries.
func (b *bed) connect(ctx context.Context, by string) error {
	if circuited(by) {
		if err := b.known(ctx); err != nil {
			return err
		}
		if err := b.ducted(ctx); err != nil {
			return err
		}
		if err := b.restoredCircuit(ctx, by); err != nil {
			return b.control.Failed(err)
		}
	}
	if by == byBFD {
		if err := b.watched(ctx); err != nil {
			return err
		}
	}
	return b.carries(ctx, by)
}

// settleTime is how long a network may take until all is as before a failure.
const settleTime = 60 * time.Second

// carries waits until the customers reach each other.
func (b *bed) carries(ctx context.Context, by string) error {
	a, z := restored(by)
	return until(ctx, settleTime, func() (string, error) {
		r, err := b.Ping(ctx, a, z, traffic.PingOptions{Count: 20, Interval: pingEvery, Timeout: 200 * time.Millisecond})
		if err != nil || r.Lost() == 0 {
			return "", err
		}
		return fmt.Sprintf("%s: %d of %d pings from %s to %s are answered", by, r.Received, r.Sent, a, z), nil
	})
}

// until waits until nothing is missing.
func until(ctx context.Context, most time.Duration, missing func() (string, error)) error {
	for end := time.Now().Add(most); ; {
		what, err := missing()
		if err != nil || what == "" {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %v: %s", most, what)
		}
		if err := backoff.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// restorations takes a sample of each failure.
func (b *bed) restorations(ctx context.Context, by string) (rows [][]string, err error) {
	a, z := restored(by)
	for _, f := range failures() {
		near, next, err := b.failing(ctx, by)
		if err != nil {
			return nil, err
		}
		failed := make(chan error, 1)
		go func() {
			time.Sleep(pingFirst)
			if f.name == byCarrier {
				failed <- b.LinkDown(ctx, near, next)
			} else {
				failed <- b.LinkSilent(ctx, near, next)
			}
		}()
		r, err := b.Ping(ctx, a, z, traffic.PingOptions{Count: int((pingFirst + f.after) / pingEvery), Interval: pingEvery})
		if down := <-failed; err == nil {
			err = down
		}
		if up := b.LinkUp(context.WithoutCancel(ctx), near, next); err == nil {
			err = up
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{f.name, strconv.Itoa(r.Sent), strconv.Itoa(r.Lost()), written(r.Outage)})
		if err := b.settled(ctx, by); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// settled waits until all is as before a failure.
func (b *bed) settled(ctx context.Context, by string) error {
	if err := b.routed(ctx); err != nil {
		return err
	}
	if b.control != nil {
		if err := b.known(ctx); err != nil {
			return err
		}
	}
	if circuited(by) {
		if err := b.circuitUp(ctx, by); err != nil {
			return b.control.Failed(err)
		}
	}
	if by == byBFD {
		if err := b.watched(ctx); err != nil {
			return err
		}
	}
	return b.carries(ctx, by)
}

// watched waits until every node asks all its neighbours by BFD and is answered.
func (b *bed) watched(ctx context.Context) error {
	return until(ctx, settleTime, func() (string, error) {
		nodes, err := b.Nodes(ctx)
		if err != nil {
			return "", err
		}
		for _, n := range nodes {
			out, err := tool(ctx, "vtysh", "--vty_socket", n.Routing, "-d", "bfdd", "-c", "show bfd peers json")
			if err != nil {
				return "", err
			}
			var peers []struct {
				Status string `json:"status"`
			}
			if err := json.Unmarshal([]byte(out), &peers); err != nil {
				return "", fmt.Errorf("BFD of node %s: %w", n.Name, err)
			}
			up := 0
			for _, p := range peers {
				if p.Status == "up" {
					up++
				}
			}
			if up < n.OSPFExpected {
				return fmt.Sprintf("node %s has BFD with %d of %d neighbours", n.Name, up, n.OSPFExpected), nil
			}
		}
		return "", nil
	})
}

// failing is the link on the path in use that is to fail.
func (b *bed) failing(ctx context.Context, by string) (near, next string, err error) {
	if circuited(by) {
		return b.circuitLink(ctx, by)
	}
	_, z := restored(by)
	host, err := b.Host(z)
	if err != nil {
		return "", "", err
	}
	out, err := tool(ctx, "ip", "-n", b.HostNetns("pe1"), "route", "get", host.IPv4.Addr().String())
	if err != nil {
		return "", "", err
	}
	for _, l := range b.topo.Links {
		if l.A == "pe1" && strings.Contains(out, fmt.Sprintf("dev vi%d ", l.APort)) {
			return l.A, l.B, nil
		}
	}
	return "", "", fmt.Errorf("no link of pe1 in %q", out)
}

// ofRestorer is one line of by_restorer.
type ofRestorer struct {
	Restorer string        `json:"restorer"`
	Failure  string        `json:"failure"`
	Outage   figure.Number `json:"outage_ms"`
	Longest  figure.Number `json:"longest_ms"`
}

// sumRestoration compares those that restore and draws them.
func sumRestoration(c *experiments.Context) error {
	panel := figure.Panel{X: figure.Axis{Names: restorers()}, Y: figure.Axis{Label: "outage, ms", Log: true}}
	var list []ofRestorer
	for i, f := range failures() {
		bars := figure.Series{Name: f.name, Kind: figure.Dots, Colour: i + 1}
		for x, by := range restorers() {
			at := c.Median("outage_ms", by, experiments.Where("failure", f.name))
			bars.Points = append(bars.Points, figure.At(float64(x), at, by))
			claim := experiments.Claim{What: fmt.Sprintf("outage, %s, %s", f.name, by), Paper: "-", Unit: "ms"}.Of(at)
			if most, there := f.marks[by]; there {
				claim = claim.AtMost(most)
			}
			c.Compare(claim)
			list = append(list, ofRestorer{by, f.name, figure.Number(at.Median), figure.Number(c.Spread("outage_ms", by, experiments.Where("failure", f.name)).Max)})
		}
		panel.Series = append(panel.Series, bars)
	}
	c.Draw(figure.Figure{Name: "section III", Title: "outage of a customer's ping after a link failed", Panels: []figure.Panel{panel}})
	c.Figure("by_restorer", list)
	return nil
}
