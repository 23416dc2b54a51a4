package policy

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// scpTopoCommand draws who talks to whom.
func scpTopoCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topo",
		Short: "Draw which functions of the 5G core talk to which",
		Long: `Draw which functions of the 5G core talk to which now: below each consumer, the producers
that it uses, by type, with what the switches have counted both ways. "direct" is who uses
a producer's own address, so that nothing is balanced; "by the front" are requests that the
front has passed on; "not authorised" is whom the policy does not allow any more. weft scp pairs has the same as a table.`,
		Example: `  weft scp topo
  weft scp topo --type UDM
  weft scp topo --dot | dot -Tsvg > core.svg`,
		Args: cobra.NoArgs,
	}
	kind := cmd.Flags().String("type", "", "draw only producers of this type, such as UDM")
	dot := cmd.Flags().Bool("dot", false, "write Graphviz's language instead")
	return cli.Query(r, cmd, func(c *cli.Controller, _ []string) (cli.View, error) {
		answer, err := c.ListScpPairs(c.Ctx, &api.ListScpPairsRequest{Type: *kind})
		if err != nil {
			return cli.View{}, err
		}
		return cli.View{Value: answer, Text: func(t *cli.Table) {
			if *dot {
				fmt.Fprint(t, scpDOT(answer.Pairs))
				return
			}
			fmt.Fprint(t, scpTree(answer.Pairs))
			if n := len(answer.Pairs); int(answer.Total) > n {
				fmt.Fprintf(t, "\n%d of %d pairs\n", n, answer.Total)
			}
		}}, nil
	})
}

// scpName names a function by its type, if it is known, and its address.
func scpName(kind, address string) string {
	return cmp.Or(kind, "unregistered") + " " + address
}

// sortPairs returns the pairs by consumer and producer, by type first, those that use the
// producer's own address last.
func sortPairs(pairs []*api.ScpPair) []*api.ScpPair {
	return slices.SortedStableFunc(slices.Values(pairs), func(a, b *api.ScpPair) int {
		return cmp.Or(cmp.Compare(a.ConsumerType, b.ConsumerType), cmp.Compare(a.Consumer, b.Consumer),
			cmp.Compare(a.Type, b.Type), cmp.Compare(a.Producer, b.Producer), cmp.Compare(cli.Yes(a.Direct), cli.Yes(b.Direct)))
	})
}

// scpTree draws a tree for each consumer, with a branch for each producer that it uses.
func scpTree(pairs []*api.ScpPair) string {
	if len(pairs) == 0 {
		return "no function has talked to another\n"
	}
	var branches [][]*api.ScpPair // those of one consumer and producer
	wide := 0
	for i, p := range sortPairs(pairs) {
		wide = max(wide, len(scpName(p.Type, p.Producer)))
		last := len(branches) - 1
		if i > 0 && branches[last][0].Consumer == p.Consumer && branches[last][0].Producer == p.Producer {
			branches[last] = append(branches[last], p)
		} else {
			branches = append(branches, []*api.ScpPair{p})
		}
	}
	var b strings.Builder
	for i, pairs := range branches {
		p := pairs[0]
		if i == 0 || branches[i-1][0].Consumer != p.Consumer {
			fmt.Fprintln(&b, scpName(p.ConsumerType, p.Consumer))
		}
		branch := "├─"
		if i+1 == len(branches) || branches[i+1][0].Consumer != p.Consumer {
			branch = "└─"
		}
		var notes []string
		for _, p := range pairs {
			notes = append(notes, strings.Join(pairNotes(p), ", "))
		}
		fmt.Fprintf(&b, "%s %-*s  %s\n", branch, wide, scpName(p.Type, p.Producer), strings.Join(notes, "; "))
	}
	return b.String()
}

// pairNotes returns the remarks about a pair. Those who are not registered are not counted.
func pairNotes(p *api.ScpPair) []string {
	notes := []string{fmt.Sprintf("%d packets, %d octets", p.Packets, p.Bytes)}
	if p.Direct && p.ConsumerType == "" && p.Packets == 0 {
		notes = []string{"not counted"}
	}
	switch {
	case p.Direct:
		notes = append(notes, "direct")
	case p.Front:
		notes = []string{fmt.Sprintf("%d requests by the front, %d errors, %v ms", p.Requests, p.Errors, p.MeanMs)}
	}
	if !p.Authorised {
		notes = append(notes, "not authorised")
	}
	return notes
}

// scpDOT writes the pairs in Graphviz's language.
func scpDOT(pairs []*api.ScpPair) string {
	var b strings.Builder
	b.WriteString("digraph core {\n  rankdir=LR; node [shape=box];\n")
	for _, p := range sortPairs(pairs) {
		host, _, err := net.SplitHostPort(p.Producer)
		if err != nil {
			host = p.Producer
		}
		style, label := "solid", fmt.Sprintf("%d packets", p.Packets)
		switch {
		case p.Direct:
			style = "dashed"
		case p.Front:
			label = fmt.Sprintf("%d requests", p.Requests)
		}
		fmt.Fprintf(&b, "  %q -> %q [label=%q, style=%s];\n", scpName(p.ConsumerType, p.Consumer), scpName(p.Type, host), label, style)
	}
	b.WriteString("}\n")
	return b.String()
}
