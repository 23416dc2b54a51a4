package get

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func Command() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Show what the controller knows",
		Long: `Show what the controller knows: of its switches, read from the switches
themselves where that is possible; of the network; and of itself.`,
		Example: `  weft get switches
  weft get flows --switch 1
  weft get hosts -o json`,
	}
	r.Flags(cmd)
	cmd.AddCommand(getSwitches(&r), getPorts(&r), getLinks(&r), getNodes(&r), getHosts(&r), getFlows(&r), getGroups(&r),
		getPaths(&r), getServices(&r), getRoutes(&r), getSync(&r), getStats(&r), getWorkers(&r), getScaling(&r), getCrossings(&r), getLogs(&r), getApps(&r), getHeartbeats(&r), getAudit(&r), getPackets(&r), getLimits(&r), getHealth(&r))
	return cmd
}

func getSwitches(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "switches",
		Short: "List the switches",
		Long: `List the switches that are or were connected. ERRORS counts what they refused,
SHED the messages dropped because a switch did not read, DUPLICATES the
connections refused because they claimed a DPID in use.`,
		Example: "  weft get switches",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListSwitches(c.Ctx, &api.ListSwitchesRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("SWITCH", "DPID", "STATE", "ROLE", "OPENFLOW", "ADDRESS", "PORTS", "TABLES", "PACKET-INS", "FLOW-MODS", "ERRORS", "SHED", "DUPLICATES", "ECHO ms", "SINCE", "SOFTWARE")
			for _, s := range m.GetSwitches() {
				state := "connected"
				if !s.Connected {
					state = strings.TrimSuffix("away: "+s.Reason, ": ")
				}
				t.Row(s.Dpid, cli.ShortDPID(s.Dpid), state, s.Role, s.Openflow, s.Address, s.Ports, s.Tables, s.PacketIns, s.FlowMods, s.Errors, s.Shed, s.Duplicates,
					cli.Millis(s.EchoUs), cli.When(s.Since), strings.TrimSpace(s.Hardware+" "+s.Software))
			}
		}}, err
	})
}

func getLinks(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "links",
		Short:   "List the links between switches, each direction",
		Example: "  weft get links -o yaml",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListLinks(c.Ctx, &api.ListLinksRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("FROM", "TO", "STATE", "WEIGHT", "LATENCY ms", "FLAPS", "SINCE", "REASON")
			for _, l := range m.GetLinks() {
				t.Row(cli.Place(l.Src), cli.Place(l.Dst), l.State, l.Weight, cli.Millis(l.LatencyUs), l.Flaps, cli.When(l.Since), l.Reason)
			}
		}}, err
	})
}

func getHosts(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "hosts",
		Short: "List the hosts, and count the packets refused from would-be ones",
		Long: `List the hosts, and count the packets refused from would-be ones. STATE says
whether a host is bound (static or sticky), and where somebody claims its place or
one of its addresses and is in quarantine.`,
		Example: "  weft get hosts -o json",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListHosts(c.Ctx, &api.ListHostsRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("MAC", "VLAN", "AT", "IPV4", "IPV6", "STATE", "MOVES", "FIRST SEEN", "LAST SEEN")
			for _, h := range m.GetHosts() {
				t.Row(h.Mac, cli.Vlan(h.Vlan), cli.Place(h.At), strings.Join(h.Ipv4, " "), strings.Join(h.Ipv6, " "), hostState(h), h.Moves, cli.When(h.FirstSeen), cli.When(h.LastSeen))
			}
			cli.Footer(t, "packets refused", m.GetRefused())
		}}, err
	})
}

func getServices(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "services",
		Short:   "List the services that run",
		Long:    "List the services that run. STAGE is the place in the packet-in pipeline.",
		Example: "  weft get services",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.GetInfo(c.Ctx, &api.GetInfoRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("NAME", "STATE", "CLASS", "SCALE", "STAGE", "WHAT IT DOES")
			for _, s := range m.GetServices() {
				stage := ""
				if i := slices.Index(m.Pipeline, s.Name); i >= 0 {
					stage = fmt.Sprint(i + 1)
				}
				t.Row(s.Name, s.State, s.Class, s.Scale, stage, s.Doc)
			}
			fmt.Fprintf(t, "\nweft %s, %s, up since %s\n", m.GetVersion(), m.GetGoVersion(), cli.When(m.GetStarted()))
		}}, err
	})
}

func getRoutes(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "routes",
		Short:   "List the paths between hosts that are programmed",
		Example: "  weft get routes",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListRoutes(c.Ctx, &api.ListRoutesRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("FROM", "TO", "VLAN", "HOPS", "PROTECTED", "REROUTES", "SINCE", "PATH")
			for _, r := range m.GetRoutes() {
				t.Row(r.Src, r.Dst, cli.Vlan(r.Vlan), len(r.Hops), cli.Yes(r.Protected), r.Reroutes, cli.When(r.Since), cli.Hops(r.Hops))
			}
		}}, err
	})
}

func getSync(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:   "sync",
		Short: "Show how far each switch has the flow entries that it is to have",
		Long: `Show how far each switch has the flow entries that it is to have. KEPT, ADDED
and REMOVED are what the last reconciliation did; FOREIGN entries are not Weft's
and left alone. The failed ones are in weft get flows, with the reason. Of a
switch that is unknown, which does not tell its entries, UNREAD is the reason:
those that it is to have are written over what it has, and none is removed.`,
		Example: "  weft get sync",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListSync(c.Ctx, &api.ListSyncRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("SWITCH", "STATE", "WANTED", "CONFIRMED", "FAILED", "FOREIGN", "KEPT", "ADDED", "REMOVED", "SINCE", "UNREAD")
			for _, s := range m.GetSwitches() {
				t.Row(s.Dpid, s.State, s.Wanted, s.Confirmed, s.Failed, s.Foreign, s.Kept, s.Added, s.Removed, cli.When(s.Since), s.Unread)
			}
		}}, err
	})
}

// hostState says in a word or two whether a host is bound or claimed.
func hostState(h *api.Host) string {
	var words []string
	if h.Bound != "" {
		words = append(words, "bound ("+h.Bound+")")
	}
	if h.ClaimedAt != nil {
		words = append(words, "claimed at "+cli.Place(h.ClaimedAt))
	}
	if len(h.HeldBy) > 0 {
		words = append(words, "held by "+strings.Join(h.HeldBy, " "))
	}
	return strings.Join(words, ", ")
}
