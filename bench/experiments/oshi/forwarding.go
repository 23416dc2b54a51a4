package oshi

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
)

// packetSize is the paper's payload, in bytes.
const packetSize = 1000

// packetRates are how many packets a second there are; the marks are at markRate.
func packetRates(quick bool) []int {
	if quick {
		return []int{markRate}
	}
	return []int{2000, 5000, markRate, 18000}
}

const markRate = 10000

// loadTime is how long a load lasts.
const loadTime = 300 * time.Millisecond

// costColumns are those of samples of cost: processor time for each packet, in
// microseconds, of the switches at ingress, core and egress, of the edges together,
// and of all of them with the source.
var costColumns = []string{"rate", "ingress_us", "core_us", "egress_us", "edges_us", "path_us", "lost"}

// costOfPacket says how it is taken, in methods.
const costOfPacket = `UDP of 1,000 bytes in one direction, at a rate, for 0.3 s; what is due is sent every millisecond, and all of it again if more than 1 % is lost.
Each hybrid node has an Open vSwitch of its own in user space, whose processor time by packet is the cost of that node (ingress_us, core_us,
egress_us): the kernel's routing is in it, because the kernel routes on behalf of whom it gets a packet from. path_us is the sum of them and of
what the source's thread takes, in which a plain router's work is. No controller; entries are written as Weft's services write theirs.`

func forwarding() experiments.Experiment {
	ways := []string{wayRouter, wayIP, wayVLL, wayEoMPLS}
	return experiments.Experiment{
		Name: "oshi-forwarding", Title: "what a packet costs a node: plain router, OSHI IP, IP VLL, EoMPLS",
		Paper: paper, Figure: "Figs. 14 and 18",
		Claim: `Fig. 14: OSHI IP, where a packet crosses Open vSwitch twice, takes 11 % to 19 % more of the processor than a plain router. Fig. 18:
IP VLL, which label-switches in Open vSwitch, takes least at edge and core; OSHI IP takes less than 10 % more.`,
		Method: `Edge, core, edge, once of hybrid nodes, once of plain routers (kernel and FRR), all there at once. ` + costOfPacket + `
OSHI IP: best effort, by OSPF's routes. IP VLL: the paper's, one label, swapped in the core. EoMPLS: as Weft's circuits, a label for the
circuit, one for the tunnel, which the group puts on and the core takes off.`,
		Deviation: `The paper's Open vSwitch forwards in the kernel, ours in user space: a packet that crosses it is received and sent by system
calls, beside which the kernel's routing is cheap. So what a plain router takes is far less, and OSHI IP, which crosses twice, takes
nearly twice as much as what crosses once. The paper's router in Fig. 18 crosses Open vSwitch too, because of VXLAN; that is oshi-overlay.`,
		Runs: 30, QuickRuns: 20, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Range(percentAsFactor("Fig. 14", "OSHI IP more than router", "least"), percentAsFactor("Fig. 14", "OSHI IP more than router", "most"), .05).OfRatio().Said("OSHI IP to router", "11 % to 19 % more").
				Because("Open vSwitch forwards in user space here, the router in the kernel"),
			experiments.AtMost(percentAsFactor("Fig. 18", "OSHI IP more than VLL", "most"), 0).OfRatio().Said("OSHI IP to VLL", "less than 10 % more"),
			experiments.Below().Said("VLL to OSHI IP", "VLL is the least"),
		},
		Columns: costColumns,
		Cases:   func(p experiments.Parameters) []experiments.Case { return waysCases("forwarding", ways, p.Quick) },
		Lasting: true, Sum: func(c *experiments.Context) error { return sumForwarding(c, ways) },
	}
}

// waysCases are cases of ways on a bed that they share.
func waysCases(label string, ways []string, quick bool) (list []experiments.Case) {
	from := &common{Open: func(ctx context.Context) (*bed, error) { return openFirst(ctx, label, waysTopology(ways)) }}
	for _, way := range ways {
		a, z := customers(way)
		list = append(list, use(from, way, func(ctx context.Context, b *bed) error { return b.circuit(ctx, way) },
			func(ctx context.Context, b *bed) ([][]string, error) {
				var nodes [3]meter
				for i, sw := range switches(way) {
					if way != wayRouter {
						nodes[i] = func() (time.Duration, error) { return b.switching(sw) }
					}
				}
				return b.cost(ctx, a, z, nodes, quick)
			}))
	}
	return list
}

// meter is the processor time that a node has taken; nil is not known apart from the
// source's.
type meter func() (time.Duration, error)

// cost takes a sample at every rate, of the nodes at ingress, core and egress.
func (b *bed) cost(ctx context.Context, from, to string, nodes [3]meter, quick bool) (rows [][]string, err error) {
	for _, rate := range packetRates(quick) {
		t := stream{from: from, to: to, size: packetSize, rate: rate, count: rate / 20, flows: 1}
		if _, err := t.send(ctx, b.Lab); err != nil { // addresses and megaflows are known after it
			return nil, err
		}
		t.count = int(loadTime.Seconds() * float64(rate))
		var before, used [3]time.Duration
		look := func(at *[3]time.Duration) (err error) {
			for i, node := range nodes {
				if node != nil && err == nil {
					at[i], err = node()
				}
			}
			return err
		}
		c, err := t.whole(ctx, b.Lab, func() error { return look(&before) }, func() error { return look(&used) })
		if err != nil {
			return nil, err
		}
		each := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(c.sent) }
		row := []string{strconv.Itoa(rate), "", "", "", ""}
		path := each(c.source)
		for i, node := range nodes {
			if node != nil {
				path += each(used[i] - before[i])
				row[1+i] = written(each(used[i] - before[i]))
			}
		}
		if nodes[0] != nil && nodes[2] != nil {
			row[4] = written(each(used[0] - before[0] + used[2] - before[2]))
		}
		rows = append(rows, append(row, written(path), strconv.Itoa(c.sent-c.received)))
	}
	return rows, nil
}

// atRate is the filter of a rate.
func atRate(n int) experiments.Filter { return experiments.Where("rate", strconv.Itoa(n)) }

// costPanel draws a column by the rate, a line for each case.
func costPanel(c *experiments.Context, title, column string, ways []string) figure.Panel {
	panel := figure.Panel{Title: title, X: figure.Axis{Label: "packets/s"}, Y: figure.Axis{Label: "processor time for each packet, µs"}}
	for i, way := range ways {
		line := figure.Series{Name: way, Kind: figure.Line, Colour: i + 1}
		for _, rate := range packetRates(c.Quick) {
			if at := c.Median(column, way, atRate(rate)); !math.IsNaN(at.Median) {
				line.Points = append(line.Points, figure.At(float64(rate), at, way))
			}
		}
		if len(line.Points) > 0 {
			panel.Series = append(panel.Series, line)
		}
	}
	return panel
}

// ofWay is one line of by_way, in microseconds.
type ofWay struct {
	Way     string        `json:"way"`
	Rate    int           `json:"rate"`
	Ingress figure.Number `json:"ingress_us"`
	Core    figure.Number `json:"core_us"`
	Egress  figure.Number `json:"egress_us"`
	Path    figure.Number `json:"path_us"`
}

// byWay is what every way takes at every rate.
func byWay(c *experiments.Context, ways []string) (list []ofWay) {
	for _, way := range ways {
		for _, rate := range packetRates(c.Quick) {
			at := func(column string) figure.Number { return figure.Number(c.Median(column, way, atRate(rate)).Median) }
			list = append(list, ofWay{way, rate, at("ingress_us"), at("core_us"), at("egress_us"), at("path_us")})
		}
	}
	return list
}

// ratioOf is a claim on what one way takes to what another does at the rate of the marks.
func ratioOf(c *experiments.Context, figure, place, column, a, b string) experiments.Claim {
	return experiments.Claim{Figure: figure, What: fmt.Sprintf("processor time, %s, %s to %s", place, a, b)}.
		Of(c.Ratio(column, a, b, atRate(markRate))).Beside(a, b)
}

// compareLost has packets that were lost among the claims; NaN where nothing was measured.
func compareLost(c *experiments.Context, figure string, ways []string) {
	var lost []float64
	for _, way := range ways {
		lost = append(lost, c.All("lost", way, nil)...)
	}
	c.Compare(experiments.Claim{Figure: figure, What: "packets lost"}.Exactly(experiments.Total(lost)))
}

// sumForwarding compares the ways with the paper and draws them.
func sumForwarding(c *experiments.Context, ways []string) error {
	c.Draw(figure.Figure{Name: "Fig. 14", Title: "what a packet costs all of its way", Panels: []figure.Panel{costPanel(c, "", "path_us", ways)}},
		figure.Figure{Name: "Fig. 18", Title: "what a packet costs a node", Panels: []figure.Panel{
			costPanel(c, "ingress edge", "ingress_us", ways), costPanel(c, "core", "core_us", ways), costPanel(c, "egress edge", "egress_us", ways),
		}})
	router := ratioOf(c, "Fig. 14", "all of the way", "path_us", wayIP, wayRouter)
	router.Says = c.Statement("OSHI IP to router")
	c.Compare(router)
	for _, at := range []struct{ place, column string }{{"edges", "edges_us"}, {"core", "core_us"}} {
		ip := ratioOf(c, "Fig. 18", at.place, at.column, wayIP, wayVLL)
		least := ratioOf(c, "Fig. 18", at.place, at.column, wayVLL, wayIP).AtMost(1)
		ip.Says, least.Says = c.Statement("OSHI IP to VLL"), c.Statement("VLL to OSHI IP")
		c.Compare(ip, least, ratioOf(c, "Fig. 18", at.place, at.column, wayEoMPLS, wayIP))
	}
	compareLost(c, "Fig. 18", ways)
	c.Figure("by_way", byWay(c, ways))
	return nil
}
