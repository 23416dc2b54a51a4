package policy

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func scpCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "scp",
		Short: "Let 5G network functions reach each other through the switches",
		Long: `Look at and steer the communication proxy of a 5G core, which the switches are:
consumers find one address for all producers of a type, and each is taken to a
producer that serves and that it may use. weft up 5gc runs it with weft lab up
5gc:3.`,
		Example: `  weft scp get
  weft scp pairs UDM
  weft scp policy set UDM --algorithm least
  weft scp drain 7f6f1d7a-9d90-5bb3-93d1-18d33a5bf971`,
	}
	r.Flags(cmd)
	cmd.AddCommand(scpGetCommand(&r), scpPairsCommand(&r), scpPolicyCommand(&r), scpDrainCommand(&r))
	return cmd
}

func scpGetCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "get [TYPE]",
		Short: "Show the producers, and what consumers reach them by",
		Example: `  weft scp get
  weft scp get UDM -o json`,
		Args: cobra.MaximumNArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.GetScp(c.Ctx, &api.GetScpRequest{Type: strings.Join(args, "")})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("TYPE", "INSTANCE", "ADDRESS", "PRIORITY", "CAPACITY", "LOAD", "CONNECTIONS", "STATE", "REASON")
			for _, p := range m.Producers {
				t.Row(p.Type, p.Instance, p.Address, p.Priority, p.Capacity, p.Load, p.Connections, p.State, p.Reason)
			}
			if len(m.Endpoints) > 0 {
				t.Row("")
				t.Row("END POINT", "INSTANCE", "ADDRESS", "SERVICES", "SLICE", "LOCALITY", "CONSUMERS", "OVERLOADED", "REFUSED")
			}
			for _, e := range m.Endpoints {
				t.Row(e.Vip, e.Instance, e.Address, strings.Join(e.Services, " "), e.Slice, e.Locality, e.Consumers, cli.Yes(e.Overloaded), e.Refused)
			}
			front := m.Front
			switch m.FrontBy {
			case "host":
				front += ", in a host, at " + m.FrontAddress
			case "packet-in":
				front += ", by packet-in, from " + m.FrontAddress + " (each packet of a discovery passes the controller; scp.listen gives the front a host)"
			}
			fmt.Fprintf(t, "\nfront: %s\nNRF: %s\n", front, m.Nrf)
		}}, err
	})
}

func scpPairsCommand(r *cli.Remote) *cobra.Command {
	var limit uint32
	cmd := &cobra.Command{
		Use:   "pairs [TYPE]",
		Short: "Show which consumer talks to which producer, and how much",
		Long: `Show which consumer talks to which producer. PACKETS and BYTES are those of both
directions, read from the switches; of a consumer that uses a producer's own
address (DIRECT) they are not counted apart.`,
		Example: `  weft scp pairs
  weft scp pairs UDM --limit 20`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().Uint32Var(&limit, "limit", 0, "how many to show; 0 is 1000, at most 10000")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.ListScpPairs(c.Ctx, &api.ListScpPairsRequest{Type: strings.Join(args, ""), Limit: limit})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("CONSUMER", "OF TYPE", "PRODUCER", "OF TYPE", "PACKETS", "BYTES", "DIRECT", "AUTHORISED", "SINCE")
			for _, p := range m.Pairs {
				t.Row(p.Consumer, p.ConsumerType, p.Producer, p.Type, p.Packets, p.Bytes, cli.Yes(p.Direct), cli.Yes(p.Authorised), cli.When(p.Since))
			}
			if int(m.Total) > len(m.Pairs) {
				fmt.Fprintf(t, "\n%d of %d; --limit shows more\n", len(m.Pairs), m.Total)
			}
		}}, err
	})
}

func scpPolicyCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Say how the producers of a type are chosen",
		Example: `  weft scp policy set UDM --algorithm least --per connection
  weft scp policy list
  weft scp policy delete UDM`,
	}
	p := &api.ScpPolicy{}
	set := &cobra.Command{
		Use:   "set TYPE",
		Short: "Set the policy of a type, as a whole",
		Example: `  weft scp policy set UDM --algorithm least --per connection
  weft scp policy set SMF --again balance --idle-timeout 60`,
		Args: cobra.ExactArgs(1),
	}
	f := set.Flags()
	f.StringVar(&p.Algorithm, "algorithm", "weighted", "weighted (by capacity and load), least (connections) or hash (of the consumer's address)")
	f.StringVar(&p.Per, "per", "pair", "pair (a consumer's connections all go to one producer) or connection")
	f.StringVar(&p.Again, "again", "bound", "a consumer that has been idle: bound (to its producer while that serves) or balance (anew)")
	f.Uint32Var(&p.IdleTimeout, "idle-timeout", 0, "seconds without packets after which it is idle; 0 is the balancer's")
	f.Uint32Var(&p.Overload, "overload", 0, "load of all producers, in percent, from which on new connections are refused; 0 is scp.overload")
	cmd.AddCommand(cli.Query(r, set, func(c *cli.Controller, args []string) (cli.View, error) {
		p.Type = args[0]
		m, err := c.SetScpPolicy(c.Ctx, &api.SetScpPolicyRequest{Policy: p})
		return cli.View{Value: m, Text: func(t *cli.Table) { scpPolicies(t, m) }}, err
	}), cli.Query(r, &cobra.Command{
		Use:     "delete TYPE",
		Short:   "Give a type the usual policy again",
		Example: `  weft scp policy delete UDM`,
		Args:    cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.DeleteScpPolicy(c.Ctx, &api.DeleteScpPolicyRequest{Type: args[0]})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			if m.Deleted {
				fmt.Fprintf(t, "policy of %s deleted\n", args[0])
			} else {
				fmt.Fprintf(t, "%s has no policy of its own\n", args[0])
			}
		}}, err
	}), cli.Query(r, &cobra.Command{
		Use:     "list",
		Short:   "Show the policies of types that have one of their own",
		Example: `  weft scp policy list -o json`,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListScpPolicies(c.Ctx, &api.ListScpPoliciesRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) { scpPolicies(t, m.Policies...) }}, err
	}))
	return cmd
}

func scpPolicies(t *cli.Table, list ...*api.ScpPolicy) {
	t.Row("TYPE", "ALGORITHM", "PER", "AGAIN", "IDLE TIMEOUT", "OVERLOAD")
	for _, p := range list {
		t.Row(p.Type, p.Algorithm, p.Per, p.Again, p.IdleTimeout, p.Overload)
	}
}

func scpDrainCommand(r *cli.Remote) *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain INSTANCE",
		Short: "Give a producer no new connections and leave it those that it has",
		Example: `  weft scp drain 7f6f1d7a-9d90-5bb3-93d1-18d33a5bf971
  weft scp drain 7f6f1d7a-9d90-5bb3-93d1-18d33a5bf971 --undo`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "give it new connections again")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.DrainProducer(c.Ctx, &api.DrainProducerRequest{Instance: args[0], Undo: undo})
		return cli.View{Value: m, Text: func(t *cli.Table) { fmt.Fprintf(t, "%s %s is %s\n", m.Type, m.Instance, m.State) }}, err
	})
}
