package scp

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/flow"
)

// The cases of scp-forwarded: whose switch sends its packets to the controller.
const (
	byNone     = "none"
	byConsumer = "consumer's switch"
	byBoth     = "both switches"
)

func forwarded() experiments.Experiment {
	return experiments.Experiment{
		Name: "scp-forwarded", Title: "throughput when packets go through the controller",
		Paper: paper, Figure: "Fig. 7",
		Claim: `Packets that go through the SDN application cost: the throughput is close to 11,000 requests/s, of 30,000 without. There is no
significant difference between the packets of the consumer's switch only and those of both.`,
		Method: `Consumer and producer as the setup direct of scp-throughput. none: the switches forward by themselves. consumer's switch, both
switches: an operator's entry on the consumer's switch, or on both, sends every packet to or from the producer's port to the controller instead,
which makes a packet-out of it. In a round each has every number of connections for 1.5 s (a quick run: 1 s). cpu_us: processor time for each request, as in
scp-throughput; packet_ins: for each request.`,
		Deviation: `Weft sends a packet from the controller straight out of the port of its destination, whatever switch that is at: with both
switches, too, a packet goes through the controller once, and then crosses no other switch, so that this is not slower than the consumer's
switch alone. The paper's ONOS, in Java, is another controller, and its switches are in the kernel; ours, in user space, share the
processors with the rest.`,
		Runs: 10, QuickRuns: 2, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Value(paperValues.Number("Fig. 7", "through the controller", "100")/paperValues.Number("Fig. 7", "none", "100"), .25).OfRatio().Said("through the controller", "11,000 to 30,000"),
			experiments.Value(1, .25).OfRatio().Said("both to one", "no significant difference"),
		},
		Columns: []string{"connections", "requests_per_s", "p95_ms", "cpu_us", "packet_ins", "failed"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			from := &common{Open: func(ctx context.Context) (*bed, error) {
				return openBed(ctx, "forwarded", map[string]map[string]string{"southbound": {"flood_rate": "0"}})
			}}
			for _, name := range []string{byNone, byConsumer, byBoth} {
				list = append(list, use(from, setup{name: name}, func(ctx context.Context, u *user) ([][]string, error) { return u.through(ctx, p.Quick) }))
			}
			return list
		},
		Lasting: true, Sum: sumForwarded,
	}
}

// entries are those that send the packets of a case to the controller.
func (u *user) entries() (list []*api.FlowEntry, err error) {
	switches := map[string][]string{byConsumer: {"s1"}, byBoth: {"s1", "s2"}}[u.of.name]
	for _, sw := range switches {
		dpid, err := u.lab.SwitchDPID(sw)
		if err != nil {
			return nil, err
		}
		for _, field := range []string{"tcp_src", "tcp_dst"} {
			list = append(list, &api.FlowEntry{
				Dpid: dpid.String(), Priority: flow.PriorityOperator, Actions: []string{"controller"},
				Match: map[string]string{"eth_type": "0x0800", "ip_proto": "6", field: fmt.Sprint(nfPort)},
			})
		}
	}
	return list, nil
}

// through takes a sample with every number of connections, with the entries of the
// case in the switches.
func (u *user) through(ctx context.Context, quick bool) (rows [][]string, err error) {
	list, err := u.entries()
	if err != nil {
		return nil, err
	}
	conn, err := u.Northbound()
	if err != nil {
		return nil, err
	}
	rules := api.NewFlowrulesClient(conn)
	if len(list) > 0 {
		answer, err := rules.AddFlows(ctx, &api.AddFlowsRequest{Flows: list})
		if err != nil {
			return nil, u.Failed(err)
		}
		defer func() {
			_, gone := rules.DeleteFlows(context.WithoutCancel(ctx), &api.DeleteFlowsRequest{Flows: list})
			err = errors.Join(err, gone)
		}()
		for _, f := range answer.Flows {
			if f.State != "confirmed" {
				return nil, u.Failed(fmt.Errorf("add a flow entry to %s: %s %s", f.Flow.GetDpid(), f.State, f.Reason))
			}
		}
	}
	const ins = "weft_southbound_packet_ins_total"
	before, err := u.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range connectionCounts(quick) {
		l, err := u.load(ctx, u.of, closedTime(quick), "--connections", fmt.Sprint(n))
		if err != nil {
			return nil, u.Failed(err)
		}
		after, err := u.Metrics(ctx)
		if err != nil {
			return nil, err
		}
		due := float64(max(l.Due, 1))
		rows = append(rows, []string{
			fmt.Sprint(n), written(l.RequestsPS), written(l.Latency.P95 / 1e3), written(l.cpu.Seconds() * 1e6 / due),
			written((after[ins] - before[ins]) / due), counted(l.failed()),
		})
		before = after
	}
	return rows, nil
}

// ofCase is one line of by_case.
type ofCase struct {
	Case        string        `json:"case"`
	Connections int           `json:"connections"`
	Requests    figure.Number `json:"requests_per_s"`
	P95         figure.Number `json:"p95_ms"`
	CPU         figure.Number `json:"cpu_us_per_request"`
	PacketIns   figure.Number `json:"packet_ins_per_request"`
}

// sumForwarded compares the cases with the paper and draws them.
func sumForwarded(c *experiments.Context) error {
	names := []string{byNone, byConsumer, byBoth}
	panel := lines(c, names, "connections", measured(c), "requests_per_s", figure.Axis{Label: "connections"}, figure.Axis{Label: "requests/s"})
	fromPaper(&panel, "Fig. 7", "none", "through the controller")
	c.Draw(figure.Figure{Name: "Fig. 7", Title: "throughput with packets through the controller", Panels: []figure.Panel{panel}})
	for _, n := range []int{10, 99} {
		for _, name := range names[1:] {
			c.Compare(experiments.Claim{What: fmt.Sprintf("requests/s, %s to none, %d connections", name, n), Says: c.Statement("through the controller")}.
				Of(c.Ratio("requests_per_s", name, byNone, with(n))).Beside(name, byNone))
		}
		c.Compare(experiments.Claim{What: fmt.Sprintf("requests/s, both switches to the consumer's, %d connections", n), Says: c.Statement("both to one")}.
			Of(c.Ratio("requests_per_s", byBoth, byConsumer, with(n))).Beside(byBoth, byConsumer))
	}
	var list []ofCase
	for _, name := range names {
		c.Compare(experiments.Claim{What: "packet-ins for each request, 99 connections, " + name, Paper: "-"}.Of(c.Median("packet_ins", name, with(99))))
		for _, n := range measured(c) {
			at := func(column string) figure.Number { return figure.Number(c.Median(column, name, with(n)).Median) }
			list = append(list, ofCase{name, n, at("requests_per_s"), at("p95_ms"), at("cpu_us"), at("packet_ins")})
		}
	}
	c.Figure("by_case", list)
	return nil
}
