package oshi

import (
	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/test/measure"
)

func pseudowire() experiments.Experiment {
	ways := []string{wayVLL, wayEoMPLS, waySingle, wayGRE, wayVXLAN}
	return experiments.Experiment{
		Name: "oshi-pseudowire", Title: "what a packet of a pseudowire costs the edges: EoMPLS, GRE, VXLAN, beside IP VLL",
		Paper: paper, Figure: "Fig. 21",
		Claim: `Pseudowires, for which the paper encapsulates frames in GRE because its Open vSwitch cannot do Ethernet over MPLS, take 15 % to
21 % more of an edge's processor than IP VLL: "these results show the potential improvements that could be achieved by natively supporting
EoMPLS".`,
		Method: `Edge, core, edge, hybrid nodes; a circuit of each kind, all there at once. ` + costOfPacket + `
IP VLL: the paper's, one label, swapped in the core. EoMPLS: native, as Weft's circuits, a label for the circuit and one for the tunnel, by a
group. EoMPLS, one label: the format alone, swapped in the core. GRE, VXLAN: tunnel ports of Open vSwitch between the edges, routed in the core.`,
		Deviation: `The paper's GRE passes a namespace of its own beside the node's Open vSwitch, and its core switches labels; ours is a port of
the switch in user space, and the core routes it. The edges are compared.`,
		Runs: 30, QuickRuns: 20, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Range(percentAsFactor("Fig. 21", "pseudowire more than VLL", "least"), percentAsFactor("Fig. 21", "pseudowire more than VLL", "most"), .1).OfRatio().Said("GRE to VLL", "15 % to 21 % more"),
			experiments.Below().Said("falls", "decreasing at higher load"),
		},
		Columns: costColumns,
		Cases:   func(p experiments.Parameters) []experiments.Case { return waysCases("pseudowire", ways, p.Quick) },
		Lasting: true, Sum: func(c *experiments.Context) error { return sumPseudowire(c, ways) },
	}
}

// sumPseudowire compares the ways with the paper and draws them.
func sumPseudowire(c *experiments.Context, ways []string) error {
	c.Draw(figure.Figure{Name: "Fig. 21", Title: "what a packet costs the edges", Panels: []figure.Panel{
		costPanel(c, "both edges", "edges_us", ways), costPanel(c, "core", "core_us", ways),
	}})
	ratio := func(a, b string) experiments.Claim { return ratioOf(c, "Fig. 21", "edges", "edges_us", a, b) }
	gre := ratio(wayGRE, wayVLL)
	gre.Says = c.Statement("GRE to VLL")
	rates := packetRates(c.Quick)
	penalty := func(rate int) []float64 {
		list, least := c.Rounds("edges_us", wayGRE, atRate(rate)), c.Rounds("edges_us", wayVLL, atRate(rate))
		for i := range list {
			list[i] /= least[i]
		}
		return list
	}
	falls := experiments.Claim{Figure: "Fig. 21", What: "that ratio at the highest rate to that at the lowest", Says: c.Statement("falls")}
	if falls = falls.Of(measure.Ratio(penalty(rates[len(rates)-1]), penalty(rates[0]))).Beside(wayGRE, wayVLL); len(rates) == 1 {
		falls.Void = "a quick run has one rate"
	}
	c.Compare(ratio(wayEoMPLS, wayVLL).AtMost(1.15), ratio(wayEoMPLS, wayGRE).AtMost(1), gre, falls, ratio(wayVXLAN, wayVLL), ratio(waySingle, wayVLL),
		ratioOf(c, "Fig. 21", "core", "core_us", wayEoMPLS, wayVLL))
	compareLost(c, "Fig. 21", ways)
	c.Figure("by_way", byWay(c, ways))
	return nil
}
