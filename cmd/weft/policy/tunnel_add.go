package policy

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
)

// tunnelFlags are the flags that say what is wanted of a tunnel.
type tunnelFlags struct {
	from, to         get.DPIDFlag
	m                api.Tunnel
	bandwidth        cli.Bandwidth
	maxDelay, revert time.Duration
	exclude, pin     []string
	priority, hold   uint32
	stay             bool
}

func (o *tunnelFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(&o.from, "from", "the switch where it begins")
	f.Var(&o.to, "to", "the switch where it ends")
	f.BoolVar(&o.m.Protect, "protect", false, "have a standby path, which shares as little with the first as can be")
	f.Var(&o.bandwidth, "bandwidth", "what it books on each link, such as 100M (bit/s); a plain number is kbit/s")
	f.DurationVar(&o.maxDelay, "max-delay", 0, "the most that its path may take, such as 5ms")
	f.Uint32Var(&o.m.MaxHops, "max-hops", 0, "the most links of its path")
	f.StringSliceVar(&o.m.IncludeAny, "include-any", nil, "colours of which each link has one")
	f.StringSliceVar(&o.m.IncludeAll, "include-all", nil, "colours that each link has")
	f.StringSliceVar(&o.m.ExcludeAny, "exclude-any", nil, "colours that no link has")
	f.StringSliceVar(&o.exclude, "exclude", nil, "a switch (DPID) or link (DPID:PORT) not to use; may be repeated")
	f.StringSliceVar(&o.m.ExcludeRiskGroups, "avoid-risk", nil, "a risk group not to use; may be repeated")
	f.StringVar(&o.m.DiverseFrom, "diverse-from", "", "a tunnel with which it shares no link and no risk group")
	f.StringSliceVar(&o.pin, "pin", nil, "a switch to pass, in this order; may be repeated")
	f.Uint32Var(&o.priority, "priority", 7, "at which it takes bandwidth from others, 0 (the best) to 7")
	f.Uint32Var(&o.hold, "hold-priority", 7, "at which others may take its bandwidth; --priority unless it is given")
	f.StringVar(&o.m.Transport, "transport", "mpls", "how its frames get there: mpls, vxlan or gre")
	f.DurationVar(&o.revert, "revert-after", time.Minute, "how long a better path has to be there before the tunnel moves to it")
	f.BoolVar(&o.stay, "no-revert", false, "move only when it must")
	for _, name := range []string{"from", "to"} {
		_ = cmd.MarkFlagRequired(name)
	}
}

// tunnel returns the tunnel that the flags describe.
func (o *tunnelFlags) tunnel(cmd *cobra.Command, name string) (*api.Tunnel, error) {
	m := &o.m
	m.Name, m.From, m.To, m.ReservedKbps = name, o.from.Text, o.to.Text, uint64(o.bandwidth)
	given := cmd.Flags().Changed
	if o.maxDelay < 0 || o.maxDelay%time.Microsecond != 0 {
		return nil, cli.Usagef(cmd, "--max-delay %v: want whole microseconds, such as 5ms", o.maxDelay)
	}
	m.MaxDelayUs = uint64(o.maxDelay.Microseconds())
	switch {
	case o.stay && given("revert-after"):
		return nil, cli.Usagef(cmd, "--revert-after and --no-revert: give one of them")
	case o.stay:
		m.RevertAfterS = -1
	case given("revert-after"):
		if o.revert < time.Second || o.revert > 24*time.Hour || o.revert%time.Second != 0 {
			return nil, cli.Usagef(cmd, "--revert-after %v: want whole seconds, 1s to 24h", o.revert)
		}
		m.RevertAfterS = int32(o.revert / time.Second)
	}
	if given("priority") {
		m.SetupPriority = &o.priority
	}
	if given("hold-priority") {
		m.HoldPriority = &o.hold
	}
	for _, text := range o.exclude {
		sw, link, err := get.ParseElement(text)
		switch {
		case err != nil:
			return nil, cli.Usagef(cmd, "--exclude: %v", err)
		case link != nil:
			m.ExcludeLinks = append(m.ExcludeLinks, link)
		default:
			m.ExcludeNodes = append(m.ExcludeNodes, sw)
		}
	}
	for _, text := range o.pin {
		sw, link, err := get.ParseElement(text)
		if err != nil || link != nil {
			return nil, cli.Usagef(cmd, "--pin %.80q: want a switch (DPID)", text)
		}
		m.Pin = append(m.Pin, sw)
	}
	return m, nil
}

func tunnelAddCommand(r *cli.Remote) *cobra.Command {
	var o tunnelFlags
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a tunnel, or change the one of that name",
		Long: `Add a tunnel, or change the one of that name, which keeps its paths where it can.
Without a path it is down, and comes up as soon as there is one.`,
		Example: `  weft tunnel add pe1-pe2 --from 1 --to 4 --protect
  weft tunnel add pe1-pe2 --from 1 --to 4 --bandwidth 100M --max-delay 5ms --exclude-any satellite
  weft tunnel add pe1-pe2-b --from 1 --to 4 --diverse-from pe1-pe2 --priority 3`,
		Args: cobra.ExactArgs(1),
	}
	o.add(cmd)
	return tunnels().add(r, cmd, func(_ *cobra.Command, args []string) (*api.Tunnel, error) {
		return o.tunnel(cmd, args[0])
	})
}

func tunnelPreviewCommand(r *cli.Remote) *cobra.Command {
	var o tunnelFlags
	cmd := &cobra.Command{
		Use:   "preview NAME",
		Short: "Show which path a tunnel would get, and change nothing",
		Long: `Show what weft tunnel add would do with the same flags: the path and the labels that
the tunnel would get, and which tunnels would lose bandwidth to it. Nothing is
changed.`,
		Example: "  weft tunnel preview pe1-pe2 --from 1 --to 4 --bandwidth 100M",
		Args:    cobra.ExactArgs(1),
	}
	o.add(cmd)
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := o.tunnel(cmd, args[0])
		if err != nil {
			return cli.View{}, err
		}
		answer, err := c.SetTunnels(c.Ctx, &api.SetTunnelsRequest{Tunnels: []*api.Tunnel{m}, DryRun: true})
		if err != nil {
			return cli.View{}, err
		}
		if len(answer.GetOutcomes()) != 1 {
			return cli.View{}, cli.Usagef(cmd, "the controller has answered with %d outcomes", len(answer.GetOutcomes()))
		}
		one := answer.Outcomes[0]
		if one.Code != 0 {
			return cli.View{}, api.Errorf(codes.Code(one.Code), "%s", one.Error)
		}
		return cli.View{Value: one, Text: func(t *cli.Table) {
			tunnelTable(t, []*api.Tunnel{one.Tunnel})
			if len(one.Preempts) > 0 {
				t.Row("takes bandwidth from", strings.Join(one.Preempts, " "))
			}
		}}, nil
	})
}
