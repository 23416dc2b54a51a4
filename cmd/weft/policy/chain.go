package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/flow"
)

func chainCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "chain",
		Short: "Lead packets through network functions behind ports",
		Long: `Lead packets through network functions behind ports of switches, one function
after the other; packets back pass them in the reverse order. A function may have
copies: each client's packets, in both directions, go through one of them.
Functions send on by one port what comes in by the other, or back by the same
port. Add the chain before its functions forward: from then on only packets of
the chain pass their ports.`,
		Example: `  weft chain add inspect --match udp,udp_dst=5001 --via 3:4,3:5
  weft chain add copies --match ip,ipv4_dst=10.0.0.2 --via 3:4,3:5+3:6,3:7 --via 4:9 --on-failure block
  weft chain list -o json
  weft chain delete inspect`,
	}
	r.Flags(cmd)
	cmd.AddCommand(chainAddCommand(&r), chains().lists(&r, &cobra.Command{
		Use:     "list [NAME]",
		Short:   "List chains, and how they are",
		Example: "  weft chain list -o json",
	}), chains().delete(&r, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a chain; its ports are ordinary ones again, so stop its functions before",
		Example: "  weft chain delete inspect",
	}, func(args []string) *api.ServiceChain { return &api.ServiceChain{Name: args[0]} }),
		chains().get(&r, "weft chain get inspect"), applyTyped(&r, "weft chain", "chains", func() []declared { return []declared{&typedDesired[*api.ServiceChain]{typedKind: chains()}} }))
	return cmd
}

// chains is the chains.
func chains() *typedKind[*api.ServiceChain] {
	return &typedKind[*api.ServiceChain]{
		known: "weft chain list", one: "chain", key: "chains",
		name: (*api.ServiceChain).GetName,
		list: func(c *cli.Controller) (proto.Message, error) { return c.ListChains(c.Ctx, &api.ListChainsRequest{}) },
		set: func(c *cli.Controller, m *api.ServiceChain) (*api.ServiceChain, error) {
			return c.SetChain(c.Ctx, &api.SetChainRequest{Chain: m})
		},
		remove: func(c *cli.Controller, m *api.ServiceChain) (cli.Deletion, error) {
			return c.DeleteChain(c.Ctx, &api.DeleteChainRequest{Name: m.Name})
		},
		table: chainTable,
		tidy: func(m *api.ServiceChain) {
			m.State, m.Reason, m.Number = "", "", 0
			for _, f := range m.Functions {
				for _, p := range f.Copies {
					p.Alive = false
				}
			}
		},
		given: []string{"priority", "on_failure", "hash"},
	}
}

func chainAddCommand(r *cli.Remote) *cobra.Command {
	var m api.ServiceChain
	var match, via []string
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a chain, or replace the one of that name",
		Example: `  weft chain add inspect --match udp,udp_dst=5001 --via 3:4,3:5
  weft chain add copies --match ip,ipv4_dst=10.0.0.2 --via 3:4,3:5+3:6,3:7 --via 4:9 --on-failure block`,
		Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.StringArrayVarP(&match, "match", "m", nil, "packets of one direction, as ovs-ofctl has it, such as tcp,tcp_dst=80; those back follow")
	f.StringArrayVar(&via, "via", nil, "the next function: SWITCH:PORT,SWITCH:PORT where packets go in and come out, or SWITCH:PORT for both; + before a copy")
	f.StringVar(&m.OnFailure, "on-failure", "", "bypass a function that is dead, or block (default bypass)")
	f.StringVar(&m.Hash, "hash", "", "what chooses the copy: the client's ports, or addresses (default ports if the match permits)")
	f.Uint32Var(&m.Priority, "priority", 0, "of the chains that a packet meets the highest counts, 1 to 999 (default 100)")
	for _, name := range []string{"match", "via"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return chains().add(r, cmd, func(cmd *cobra.Command, args []string) (*api.ServiceChain, error) {
		parsed, err := flow.ParseMatchString(cli.WithProtocols(strings.Join(match, ",")))
		if err != nil {
			return nil, cli.Usagef(cmd, "--match: %v", err)
		}
		m.Name, m.Match, m.Functions = args[0], parsed.Text(), nil
		for _, text := range via {
			fn, err := readFunction(text)
			if err != nil {
				return nil, cli.Usagef(cmd, "--via %s: %v", text, err)
			}
			m.Functions = append(m.Functions, fn)
		}
		return &m, nil
	})
}

// readFunction reads copies of a function: SWITCH:PORT[,SWITCH:PORT], with + between.
func readFunction(text string) (*api.ChainFunction, error) {
	f := &api.ChainFunction{}
	for _, one := range strings.Split(text, "+") {
		p := &api.ChainCopy{}
		in, out, two := strings.Cut(one, ",")
		for _, at := range []struct {
			text string
			to   **api.Location
		}{{in, &p.In}, {out, &p.Out}} {
			if at.text == "" && at.to == &p.Out && !two {
				continue
			}
			_, l, err := get.ParseElement(at.text)
			if err == nil && l == nil {
				err = fmt.Errorf("%q: want SWITCH:PORT", at.text)
			}
			if err != nil {
				return nil, err
			}
			*at.to = l
		}
		f.Copies = append(f.Copies, p)
	}
	return f, nil
}

func chainTable(t *cli.Table, list []*api.ServiceChain) {
	t.Row("NAME", "PRIORITY", "MATCH", "VIA", "ON FAILURE", "STATE")
	for _, m := range list {
		var via []string
		for _, f := range m.Functions {
			var copies []string
			for _, p := range f.Copies {
				text := cli.Place(p.In)
				if p.Out != nil {
					text += "," + cli.Place(p.Out)
				}
				if !p.Alive {
					text += " (dead)"
				}
				copies = append(copies, text)
			}
			via = append(via, strings.Join(copies, "+"))
		}
		state := m.State
		if m.Reason != "" {
			state += ": " + m.Reason
		}
		t.Row(m.Name, fmt.Sprint(m.Priority), cli.MatchText(m.Match), strings.Join(via, " "), m.OnFailure, state)
	}
}
