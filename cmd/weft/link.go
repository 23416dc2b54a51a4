package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

func linkCommand() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Allow links that discovery holds",
		Long: `Allow links that discovery holds. A new link whose probes take longer than over a
cable may be a relay between hosts, so it is held: weft get links lists it with
the reason. If it is a cable, only a long one, allow it.`,
		Example: `  weft get links
  weft link allow 1:3 2:1
  weft link revoke 1:3 2:1
  weft link list`,
	}
	r.flags(cmd)
	cmd.AddCommand(
		linkSetCommand(&r, &cobra.Command{
			Use:   "allow DPID:PORT DPID:PORT",
			Short: "Have a link come up whatever its latency is",
			Long: `Have a link between two ports come up whatever its latency and the history of its
ports are. The controller keeps this over restarts. A plan or configuration says
the same by discovery.allow, and discovery.latency.max says how long links are.`,
			Example: "  weft link allow 1:3 2:1",
		}, false),
		linkSetCommand(&r, &cobra.Command{
			Use:     "revoke DPID:PORT DPID:PORT",
			Short:   "Take back weft link allow; the link is judged anew",
			Example: "  weft link revoke 1:3 2:1",
		}, true),
		linkListCommand(&r))
	return cmd
}

// parseLocation reads DPID:PORT, or DPID/PORT as weft get links prints it.
func parseLocation(text string) (*api.Location, error) {
	i := strings.LastIndexAny(text, ":/")
	if i < 0 {
		return nil, fmt.Errorf("%.80q: want DPID:PORT, such as 1:3", text)
	}
	sw, err := flow.ParseDPID(text[:i])
	n, err2 := strconv.ParseUint(text[i+1:], 10, 32)
	if err != nil || err2 != nil {
		return nil, fmt.Errorf("%.80q: want DPID:PORT, such as 1:3", text)
	}
	return api.NewLocation(flow.Location{Switch: sw, Port: flow.Port(n)}), nil
}

func linkSetCommand(r *remote, cmd *cobra.Command, revoke bool) *cobra.Command {
	var out output
	cmd.Args = cobra.ExactArgs(2)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := parseLocation(args[0])
		if err != nil {
			return wrongly(cmd, "%v", err)
		}
		b, err := parseLocation(args[1])
		if err != nil {
			return wrongly(cmd, "%v", err)
		}
		c, done, err := r.dial(cmd)
		if err != nil {
			return err
		}
		defer done()
		m, err := c.AllowLink(c.ctx, &api.AllowLinkRequest{A: a, B: b, Revoke: revoke})
		if err != nil {
			return err
		}
		return out.print(cmd, m, func(t *table) {
			if revoke {
				t.row("link", place(a), "-", place(b), "is no longer allowed")
			} else {
				t.row("link", place(a), "-", place(b), "is allowed")
			}
		})
	}
	out.flag(cmd)
	return cmd
}

func linkListCommand(r *remote) *cobra.Command {
	return getter(r, &cobra.Command{
		Use:     "list",
		Short:   "List the links that are allowed",
		Example: "  weft link list -o json",
	}, func(c *controller, _ []string) (view, error) {
		m, err := c.ListLinks(c.ctx, &api.ListLinksRequest{})
		list := &api.ListLinksResponse{Allowed: m.GetAllowed()}
		return view{value: list, text: func(t *table) {
			t.row("PORT", "PORT")
			for _, l := range list.Allowed {
				t.row(place(l.A), place(l.B))
			}
		}}, err
	})
}
