package planner

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan/partition"
)

// PartitionReport is what weft plan partition prints.
type PartitionReport struct {
	Network     string           `json:"network"`
	Switches    int              `json:"switches"`
	Links       int              `json:"links"`
	Method      string           `json:"method"`
	Partitions  []partitionEntry `json:"partitions"`
	Borders     []string         `json:"borders"` // as ranges
	Shared      bool             `json:"shared"`  // border switches belong to the partitions of all neighbours
	Cut         int64            `json:"cut"`
	CutLinks    int              `json:"cut_links"`
	Balance     float64          `json:"balance"`
	Symmetric   bool             `json:"symmetric"`
	Connected   bool             `json:"connected"`
	Convergence *convergence     `json:"convergence,omitempty"`

	graph  *partition.Graph
	of     []int  // by switch: its partition
	border []bool // by switch
}

// partitionEntry is one partition.
type partitionEntry struct {
	Name     string   `json:"name"`
	Switches []string `json:"switches"` // as ranges
	Count    int      `json:"count"`
	Load     int64    `json:"load"`
	Internal int      `json:"internal"`
	Borders  int      `json:"borders"`
	Links    int      `json:"links"`
	Pieces   int      `json:"pieces"`
}

// read takes in what was found.
func (r *PartitionReport) read(cut partition.Result) {
	r.Switches, r.Links = len(r.graph.Switches), len(r.graph.Links)
	r.Method, r.Cut, r.CutLinks, r.Balance, r.Symmetric, r.Connected = cut.Method, cut.Cut, cut.CutLinks, cut.Balance, cut.Symmetric, cut.Connected()
	r.of, r.border = cut.Of, borderOf(cut)
	r.Borders, r.Shared = shortRanges(r.graph, cut.Borders), cut.Shared
	for i, p := range cut.Parts {
		r.Partitions = append(r.Partitions, partitionEntry{
			Name: cut.Names[i], Switches: shortRanges(r.graph, cut.Switches(i)), Count: p.Switches,
			Load: p.Load, Internal: p.Internal, Borders: p.Borders, Links: p.Links, Pieces: p.Pieces,
		})
	}
}

// shortRanges writes switches, by their indices in order, as ranges of DPIDs
// that a plan reads.
func shortRanges(g *partition.Graph, list []int) []string {
	texts := []string{}
	for i := 0; i < len(list); {
		r := flow.DPIDRange{First: g.Switches[list[i]].DPID, Last: g.Switches[list[i]].DPID}
		for i++; i < len(list) && g.Switches[list[i]].DPID == r.Last+1; i++ {
			r.Last++
		}
		text := fmt.Sprintf("%x", uint64(r.First))
		if r.Last != r.First {
			text += fmt.Sprintf("-%x", uint64(r.Last))
		}
		texts = append(texts, text)
	}
	return texts
}

func (r *PartitionReport) print(cmd *cobra.Command, format string) error {
	if format == "yaml" {
		_, err := io.WriteString(cmd.OutOrStdout(), r.section())
		return err
	}
	if format == "svg" {
		text, err := r.svg()
		if err != nil {
			return err
		}
		_, err = io.WriteString(cmd.OutOrStdout(), text)
		return err
	}
	out := cli.Output{Format: format}
	if format == "json" {
		return out.Print(cmd, r, nil)
	}
	for i, text := range []func(*cli.Table){r.table, r.about, r.Convergence.table, r.Convergence.about} {
		if i > 1 && r.Convergence == nil {
			break
		}
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := out.Print(cmd, r, text); err != nil {
			return err
		}
	}
	return nil
}

// section is the partitions as a plan has them. The last has the rest, so that
// every switch that ever connects is in one.
func (r *PartitionReport) section() string {
	var b strings.Builder
	b.WriteString("partitions:\n")
	for i, p := range r.Partitions {
		list := []string{}
		for _, s := range p.Switches {
			list = append(list, `"`+s+`"`)
		}
		if i == len(r.Partitions)-1 {
			list = append(list, "rest")
		}
		fmt.Fprintf(&b, "  %s: {switches: [%s]}\n", p.Name, strings.Join(list, ", "))
	}
	return b.String()
}

// table writes the partitions for people.
func (r *PartitionReport) table(t *cli.Table) {
	t.Row("PARTITION", "SWITCHES", "LOAD", "INTERNAL", "BORDER", "LINKS", "DPIDS")
	for _, p := range r.Partitions {
		t.Row(p.Name, p.Count, p.Load, p.Internal, p.Borders, p.Links, few(p.Switches, 6))
	}
}

// about writes what there is to say of all of them.
func (r *PartitionReport) about(t *cli.Table) {
	how := map[string]string{partition.ByStructure: "whole parts that are alike", partition.ByCut: "a cut of little weight"}[r.Method]
	t.Row("network", fmt.Sprintf("%s: %d switches, %d links", r.Network, r.Switches, r.Links))
	t.Row("method", r.Method+", "+how)
	t.Row("cut", fmt.Sprintf("%d over %d links", r.Cut, r.CutLinks))
	t.Row("balance", fmt.Sprintf("%.3f, the heaviest over the mean", r.Balance))
	t.Row("symmetric", cli.Yes(r.Symmetric))
	t.Row("connected", cli.Yes(r.Connected))
	t.Row("border switches", few(r.Borders, 8))
}

// table writes the choice for people.
func (c *convergence) table(t *cli.Table) {
	t.Row("PARTITIONS", "BORDER", "SYMMETRIC", "PAPER'S COST", "PREDICTED MS", "MEASURED MS", "ERROR", "")
	for _, p := range c.Curve {
		note := ""
		switch {
		case p.Partitions == c.Partitions:
			note = "chosen"
		case p.Partitions == c.Best:
			note = "least"
		}
		predicted, measured, wrong := "", "", ""
		if p.Predicted > 0 {
			predicted = fmt.Sprintf("%.3f", p.Predicted)
		}
		if p.Measured > 0 {
			measured, wrong = fmt.Sprintf("%.3f", p.Measured), fmt.Sprintf("%+.0f %%", 100**p.Error)
			if p.Fitted {
				wrong += " (fitted)"
			}
		}
		t.Row(p.Partitions, p.Borders, cli.Yes(p.Symmetric), fmt.Sprintf("%.3g", p.Cost), predicted, measured, wrong, note)
	}
}

// about writes the model, and what was left out.
func (c *convergence) about(t *cli.Table) {
	t.Row("chosen", fmt.Sprintf("%s, the fewest within %g %% of the least time, that of %d", partitionCount(c.Partitions), 100*c.Slack, c.Best))
	if x := c.Constants; x != nil {
		t.Row("model", fmt.Sprintf("ms = %.3g intra + %.3g border + %.3g external + %.3g messages", x.Intra, x.Border, x.External, x.Message))
	}
	for _, why := range c.Left {
		t.Row("left out", why)
	}
}

// few lists so many of a list.
func few(list []string, most int) string {
	if len(list) > most {
		return strings.Join(list[:most], " ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, " ")
}
