package get

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

// constraints are the flags of weft path that ask for a path under constraints.
type constraints struct {
	demand                 api.PathDemand
	bandwidth              cli.Bandwidth
	maxDelay               time.Duration
	exclude, via, disjoint []string
}

// flags adds the flags to a command, and returns their names: each asks for such a path.
func (o *constraints) flags(cmd *cobra.Command) (names []string) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Var(&o.bandwidth, "bandwidth", "what each link must have, such as 100M (bit/s); a plain number is kbit/s")
	f.DurationVar(&o.maxDelay, "max-delay", 0, "the most that it may take, such as 5ms")
	f.Uint32Var(&o.demand.MaxHops, "max-hops", 0, "the most links")
	f.StringVar(&o.demand.Minimise, "minimise", "cost", "what is as small as can be: cost, delay, or narrowness: the path with the most free bandwidth")
	f.StringSliceVar(&o.exclude, "exclude", nil, "a switch or link (SWITCH:PORT) not to use; may be repeated")
	f.StringSliceVar(&o.demand.ExcludeRiskGroups, "avoid-risk", nil, "a risk group not to use; may be repeated")
	f.StringSliceVar(&o.via, "via", nil, "a switch or link (SWITCH:PORT) to pass, in this order; may be repeated")
	f.StringSliceVar(&o.demand.IncludeAny, "include-any", nil, "colours of which each link has one")
	f.StringSliceVar(&o.demand.IncludeAll, "include-all", nil, "colours that each link has")
	f.StringSliceVar(&o.demand.ExcludeAny, "exclude-any", nil, "colours that no link has")
	f.StringSliceVar(&o.disjoint, "pair", nil, "two paths that share none of links, switches, risk-groups")
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	cmd.Flags().AddFlagSet(f)
	return names
}

// compute asks for the path that the flags describe.
func (o *constraints) compute(cmd *cobra.Command, c *cli.Controller, a, b Endpoint) (*api.FindPathResponse, error) {
	d := &o.demand
	d.Src, d.Dst, d.BandwidthKbps = a.Dpid, b.Dpid, uint64(o.bandwidth)
	if o.maxDelay < 0 {
		return nil, cli.Usagef(cmd, "--max-delay %v: want more than nothing", o.maxDelay)
	}
	d.MaxDelayUs = uint64(o.maxDelay.Microseconds())
	for _, text := range o.exclude {
		sw, link, err := ParseElement(text)
		switch {
		case err != nil:
			return nil, cli.Usagef(cmd, "--exclude %v", err)
		case link != nil:
			d.ExcludeLinks = append(d.ExcludeLinks, link)
		default:
			d.ExcludeSwitches = append(d.ExcludeSwitches, sw)
		}
	}
	for _, text := range o.via {
		sw, link, err := ParseElement(text)
		if err != nil {
			return nil, cli.Usagef(cmd, "--via %v", err)
		}
		d.Via = append(d.Via, &api.PathVia{Dpid: sw, Link: link})
	}
	if d.Minimise != "cost" && d.Minimise != "delay" && d.Minimise != "narrowness" {
		return nil, cli.Usagef(cmd, "--minimise %.80q: want cost, delay or narrowness", d.Minimise)
	}
	for _, text := range o.disjoint {
		if !slices.Contains([]string{"links", "switches", "risk-groups", "risk_groups"}, text) {
			return nil, cli.Usagef(cmd, "--pair %.80q: want links, switches or risk-groups, or several with commas between", text)
		}
		d.Disjoint = append(d.Disjoint, strings.ReplaceAll(text, "-", "_"))
	}
	m, err := c.ComputePaths(c.Ctx, &api.ComputePathsRequest{Demands: []*api.PathDemand{d}})
	if err != nil {
		return nil, err
	}
	answer := m.GetAnswers()[0]
	if answer.Reason != "" {
		return nil, errors.New(answer.Reason)
	}
	return &api.FindPathResponse{Paths: answer.Paths, Version: m.Version}, nil
}

// ParseElement reads a switch, or a link by one of its ports.
func ParseElement(text string) (sw string, link *api.Location, err error) {
	if !strings.Contains(text, ":") {
		sw, err = cli.SwitchText(text)
		return sw, nil, err
	}
	if link, err = cli.PlaceText(text); err != nil || !flow.Port(link.Port).Physical() {
		return "", nil, fmt.Errorf("%.80q: want a switch (a name, or a DPID of up to 16 hex digits) or a link (SWITCH:PORT), such as s1:3", text)
	}
	return "", link, nil
}
