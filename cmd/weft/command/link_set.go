package command

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// linkSetValuesCommand sets what the operator says of a link.
func linkSetValuesCommand(r *cli.Remote) *cobra.Command {
	var m api.LinkSettings
	var capacity cli.Bandwidth
	var delay time.Duration
	var clear bool
	cmd := &cobra.Command{
		Use:   "set SWITCH:PORT SWITCH:PORT",
		Short: "Say what a link is worth: capacity, delay, metric, colours, risk groups, drained",
		Long: `Say of the link between two ports, for both directions, what paths under
constraints may book on it and how they choose it: weft path and what is built on
it. The controller keeps this over restarts, also for a link that is not there
yet. Flags that are left out change nothing; an empty value, or 0, takes a value
back, and --clear all of them. weft link list shows what is set.`,
		Example: `  weft link set 1:3 2:1 --capacity 10G --delay 2ms --colour gold,terrestrial
  weft link set 1:3 2:1 --risk-group duct-7 --metric 20
  weft link set 1:3 2:1 --drained            # nothing new on it
  weft link set 1:3 2:1 --drained=false --colour ''
  weft link set 1:3 2:1 --clear`,
		Args: cobra.ExactArgs(2),
	}
	cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		a, err := cli.PlaceText(args[0])
		b, err2 := cli.PlaceText(args[1])
		if err := cmp.Or(err, err2); err != nil {
			return cli.View{}, cli.Usagef(cmd, "%v", err)
		}
		if delay < 0 || delay > 10*time.Second || delay%time.Microsecond != 0 {
			return cli.View{}, cli.Usagef(cmd, "--delay %v: want whole microseconds, 0 to 10s", delay)
		}
		m.CapacityKbps, m.DelayUs = uint64(capacity), uint32(delay.Microseconds())
		req := &api.SetLinkRequest{A: a, B: b, Settings: &m}
		for flag, name := range map[string]string{"capacity": "capacity_kbps", "delay": "delay_us", "metric": "metric", "colour": "colours", "risk-group": "risk_groups", "drained": "drained"} {
			if cmd.Flags().Changed(flag) {
				req.Change = append(req.Change, name)
			}
		}
		switch {
		case clear && len(req.Change) > 0:
			return cli.View{}, cli.Usagef(cmd, "--clear takes back everything: give no other value with it")
		case clear:
			req.Settings = nil
		case len(req.Change) == 0:
			return cli.View{}, cli.Usagef(cmd, "nothing to set: give --capacity, --delay, --metric, --colour, --risk-group, --drained or --clear")
		}
		answer, err := c.SetLink(c.Ctx, req)
		return cli.View{Value: answer, Text: func(t *cli.Table) {
			t.Row("link", cli.Place(a), "-", cli.Place(b), "is", linkSettings(answer.GetSettings()))
		}}, err
	})
	f := cmd.Flags()
	f.Var(&capacity, "capacity", "what may be booked in each direction, such as 10G, 100M or 64K (bit/s); a plain number is kbit/s; 0: the speed of its slower port")
	f.DurationVar(&delay, "delay", 0, "what it takes, such as 2ms; 0: as measured")
	f.Uint32Var(&m.Metric, "metric", 0, "what it costs in computed paths, 1 to 65535; 0: its weight")
	f.StringSliceVar(&m.Colours, "colour", nil, "its colours, with commas between: all of them, for they replace those before")
	f.StringSliceVar(&m.RiskGroups, "risk-group", nil, "what it fails together with, as with --colour")
	f.BoolVar(&m.Drained, "drained", false, "it is to carry nothing new")
	f.BoolVar(&clear, "clear", false, "take back everything that is set")
	return cmd
}

// linkSettings returns settings in words.
func linkSettings(m *api.LinkSettings) string {
	var parts []string
	if m.GetCapacityKbps() > 0 {
		capacity := cli.Bandwidth(m.CapacityKbps)
		parts = append(parts, "capacity "+capacity.String())
	}
	if m.GetDelayUs() > 0 {
		parts = append(parts, "delay "+(time.Duration(m.DelayUs)*time.Microsecond).String())
	}
	if m.GetMetric() > 0 {
		parts = append(parts, "metric "+fmt.Sprint(m.Metric))
	}
	if len(m.GetColours()) > 0 {
		parts = append(parts, "colour "+strings.Join(m.Colours, ","))
	}
	if len(m.GetRiskGroups()) > 0 {
		parts = append(parts, "risk group "+strings.Join(m.RiskGroups, ","))
	}
	if m.GetDrained() {
		parts = append(parts, "drained")
	}
	if len(parts) == 0 {
		return "as discovered"
	}
	return strings.Join(parts, ", ")
}
