package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func balancerCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "balancer",
		Short: "Spread connections to virtual IPs over pools of hosts",
		Long: `Spread connections to virtual IPs over pools of hosts. The controller answers for
a virtual IP's address, gives each connection to a member of its pool, and has
the switches rewrite the packets. VIPs are kept over restarts.`,
		Example: `  weft balancer add web --address 10.0.0.100 --port 80 --member 10.0.0.1:8080 --member 10.0.0.2:8080 --check tcp
  weft balancer list
  weft balancer drain web 10.0.0.1:8080`,
	}
	r.Flags(cmd)
	cmd.AddCommand(balancerAddCommand(&r), balancerListCommand(&r), balancerDeleteCommand(&r),
		balancerMemberCommand(&r), balancerDrainCommand(&r), balancerConnectionsCommand(&r), balancerPairsCommand(&r),
		vips().get(&r, "weft balancer get web"), applyTyped(&r, "weft balancer", "virtual IPs", func() []declared { return []declared{&typedDesired[*api.Vip]{typedKind: vips()}} }))
	return cmd
}

// operator owns the virtual IPs that commands make.
const operator = "operator"

// vips is the virtual IPs.
func vips() *typedKind[*api.Vip] {
	return &typedKind[*api.Vip]{
		known: "weft balancer list", one: "virtual IP", key: "vips",
		name: (*api.Vip).GetName,
		list: func(c *cli.Controller) (proto.Message, error) { return c.ListVips(c.Ctx, &api.ListVipsRequest{}) },
		set: func(c *cli.Controller, m *api.Vip) (*api.Vip, error) {
			return c.SetVip(c.Ctx, &api.SetVipRequest{Vip: m})
		},
		remove: func(c *cli.Controller, m *api.Vip) (cli.Deletion, error) {
			return c.DeleteVip(c.Ctx, &api.DeleteVipRequest{Name: m.Name})
		},
		table:   vipsTable,
		foreign: func(m *api.Vip) bool { return m.Owner != "" && m.Owner != operator },
		tidy: func(m *api.Vip) {
			m.Connections, m.Refused, m.Groups, m.Open, m.Pairs, m.Effect = 0, 0, nil, false, 0, ""
			if m.Owner = cmp.Or(m.Owner, operator); m.Shadow {
				m.Mac = "" // the host's
			}
			for _, p := range m.Pool {
				p.Connections, p.Total, p.Health, p.Reason, p.Mac, p.At = 0, 0, "", "", "", nil
				p.Port, p.Weight, p.State = cmp.Or(p.Port, m.Port), cmp.Or(p.Weight, 1), cmp.Or(p.State, "up")
			}
		},
		given: []string{"protocol", "policy", "mac", "idle_timeout", "health", "refuse", "per", "again"},
	}
}

// vipFlags describe a virtual IP.
type vipFlags struct {
	address, protocol, policy, mac string
	port, vlan                     uint16
	members                        []string
	sticky, idle                   uint32
	stateless, shadow, takeover    bool
	allow                          []string
	refuse, per, again             string
	check                          string
	checkPort                      uint16
	interval, idleInterval         uint32
	timeout, rise, fall            uint32
}

func (o *vipFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.address, "address", "", "the IPv4 or IPv6 address that clients use")
	f.StringVar(&o.protocol, "protocol", "tcp", "tcp, udp or any (all of both, at all ports)")
	f.Uint16Var(&o.port, "port", 0, "the port that clients use")
	f.Uint16Var(&o.vlan, "vlan", 0, "the VLAN of clients and members; 0 is untagged")
	f.StringVar(&o.policy, "policy", "weighted", "weighted (round robin), least (connections) or hash (of the client's address)")
	f.StringArrayVarP(&o.members, "member", "m", nil, "a member: ADDRESS, ADDRESS:PORT or [IPV6]:PORT, with @WEIGHT or @WEIGHT/PRIORITY behind it if these are not 1 and 0; may be repeated")
	f.StringSliceVar(&o.allow, "allow", nil, "who may connect: addresses or prefixes, or none; everybody if left out")
	f.StringVar(&o.refuse, "refuse", "", "what happens to clients that may not connect, or that no member serves: reset (the default), drop, or to:ADDRESS:PORT")
	f.BoolVar(&o.takeover, "takeover", false, "with --shadow: connections that the host has are reset when a member begins to serve")
	f.BoolVar(&o.shadow, "shadow", false, "the address is that of a host that exists, whose clients members are to serve")
	f.StringVar(&o.per, "per", "", "what has entries of its own: connection (the default) or pair (of client and member)")
	f.StringVar(&o.again, "again", "", "with --per pair, what happens to a pair that was idle: balance (the default) or bound (to its member)")
	f.Uint32Var(&o.sticky, "sticky", 0, "seconds for which a client stays with its member; 0 is not at all")
	f.Uint32Var(&o.idle, "idle-timeout", 0, "seconds without packets after which a connection is over; 0 is what the controller is configured to")
	f.BoolVar(&o.stateless, "stateless", false, "each packet may go to any member: switches choose, by a select group, where all members are attached to them")
	f.StringVar(&o.mac, "mac", "", "the Ethernet address of the VIP; one is made up if left out")
	f.StringVar(&o.check, "check", "none", "how members are checked: tcp, icmp, arp or none")
	f.Uint16Var(&o.checkPort, "check-port", 0, "the port of checks by tcp; 0 is the member's")
	f.Uint32Var(&o.interval, "check-interval", 0, "milliseconds between checks; 0 is 2000")
	f.Uint32Var(&o.idleInterval, "check-idle-interval", 0, "milliseconds between tcp checks of a member that is up, unused or seen to answer; 0 is --check-interval")
	f.Uint32Var(&o.timeout, "check-timeout", 0, "milliseconds until a check has failed; 0 is 1000")
	f.Uint32Var(&o.rise, "rise", 0, "good checks in a row that bring a member up; 0 is 2")
	f.Uint32Var(&o.fall, "fall", 0, "failed checks in a row that bring a member down; 0 is 3")
}

// vip returns the message of the flags.
func (o *vipFlags) vip(cmd *cobra.Command, args []string) (*api.Vip, error) {
	v := &api.Vip{
		Name: args[0], Address: o.address, Protocol: o.protocol, Port: uint32(o.port), Vlan: uint32(o.vlan), Policy: o.policy,
		Stickiness: o.sticky, IdleTimeout: o.idle, Stateless: o.stateless, Mac: o.mac,
		Shadow: o.shadow, Takeover: o.takeover, Refuse: o.refuse, Per: o.per, Again: o.again,
		Health: &api.HealthCheck{Kind: o.check, Port: uint32(o.checkPort), IntervalMs: o.interval, IdleIntervalMs: o.idleInterval, TimeoutMs: o.timeout, Rise: o.rise, Fall: o.fall},
	}
	if cmd.Flags().Changed("allow") {
		v.Allow = &api.Allow{}
		if !slices.Equal(o.allow, []string{"none"}) {
			v.Allow.Clients = o.allow
		}
	}
	for _, text := range o.members {
		m, err := parseMember(text)
		if err != nil {
			return nil, cli.Usagef(cmd, "--member %s", err)
		}
		v.Pool = append(v.Pool, m)
	}
	return v, nil
}

// parseMember reads ADDRESS, ADDRESS:PORT or [IPV6]:PORT, with @WEIGHT or
// @WEIGHT/PRIORITY.
func parseMember(text string) (*api.PoolMember, error) {
	where, weight, weighted := strings.Cut(text, "@")
	m := &api.PoolMember{}
	if weighted {
		weight, priority, tiered := strings.Cut(weight, "/")
		n, err := strconv.ParseUint(weight, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%q: want a weight of 1 to 65535 behind @", text)
		}
		m.Weight = uint32(n)
		if tiered {
			if n, err = strconv.ParseUint(priority, 10, 16); err != nil {
				return nil, fmt.Errorf("%q: want a priority of 0 to 65535 behind /", text)
			}
			m.Priority = uint32(n)
		}
	}
	if a, err := netip.ParseAddr(strings.Trim(where, "[]")); err == nil {
		m.Address = a.String()
		return m, nil
	}
	p, err := netip.ParseAddrPort(where)
	if err != nil {
		return nil, fmt.Errorf("%q: want an address such as 10.0.0.1, 10.0.0.1:8080 or [fd00::1]:8080", text)
	}
	m.Address, m.Port = p.Addr().String(), uint32(p.Port())
	return m, nil
}

func balancerAddCommand(r *cli.Remote) *cobra.Command {
	var o vipFlags
	var dry bool
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a virtual IP, or replace the one of that name",
		Long: `Make a virtual IP, or replace the one of that name as a whole; connections of
members that stay are not cut.`,
		Example: `  weft balancer add web --address 10.0.0.100 --port 80 --member 10.0.0.1:8080@2 --member 10.0.0.2:8080 --check tcp
  weft balancer add web6 --address fd00::100 --port 80 --member [fd00::1]:8080 --policy least
  weft balancer add dns --address 10.0.0.53 --protocol udp --port 53 --member 10.0.0.3 --member 10.0.0.4 --stateless --check icmp`,
		Args: cobra.ExactArgs(1),
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would happen")
	kind := vips()
	kind.set = func(c *cli.Controller, m *api.Vip) (*api.Vip, error) {
		return c.SetVip(c.Ctx, &api.SetVipRequest{Vip: m, DryRun: dry})
	}
	kind.table = func(t *cli.Table, list []*api.Vip) { vipsOrTrial(t, list, dry) }
	return kind.add(r, cmd, o.vip)
}

// vipsOrTrial prints VIPs, or, of a dry run, what would become of them.
func vipsOrTrial(t *cli.Table, list []*api.Vip, dry bool) {
	if !dry {
		vipsTable(t, list)
		return
	}
	for _, v := range list {
		fmt.Fprintf(t, "virtual IP %s would be %s\n", v.Name, v.Effect)
	}
}

func balancerListCommand(r *cli.Remote) *cobra.Command {
	return vips().lists(r, &cobra.Command{
		Use:   "list [NAME]",
		Short: "Show virtual IPs, their members, and how they are",
		Long: `Show virtual IPs, their members, and how they are. STATE is what is wanted (up,
draining, down), HEALTH what checks say (up, down, unknown, or away: not known as
a host). CONNECTIONS are those with packets within the idle timeout.`,
		Example: `  weft balancer list
  weft balancer list web -o json`,
	})
}

// vipsTable prints VIPs and their members.
func vipsTable(t *cli.Table, list []*api.Vip) {
	for i, v := range list {
		if i > 0 {
			fmt.Fprintln(t)
		}
		t.Row("VIP", "ADDRESS", "PORT", "PROTOCOL", "POLICY", "CHECK", "MAC", "OWNER", "CONNECTIONS", "PAIRS", "REFUSED")
		t.Row(v.Name, v.Address, v.Port, v.Protocol, v.Policy, v.GetHealth().GetKind(), v.Mac, v.Owner, v.Connections, v.Pairs, v.Refused)
		t.Row("  MEMBER", "ADDRESS", "PORT", "WEIGHT", "PRIORITY", "STATE", "HEALTH", "AT", "CONNECTIONS", "TOTAL", "REASON")
		for _, m := range v.Pool {
			at := ""
			if m.At != nil {
				at = m.At.Flow().String()
			}
			t.Row("", m.Address, m.Port, m.Weight, m.Priority, m.State, m.Health, at, m.Connections, m.Total, m.Reason)
		}
	}
}

func balancerDeleteCommand(r *cli.Remote) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a virtual IP; its connections end",
		Example: `  weft balancer delete web
  weft balancer delete web --dry-run`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would happen")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.DeleteVip(c.Ctx, &api.DeleteVipRequest{Name: args[0], DryRun: dry})
		v, err := cli.Deleted(m, err, "virtual IP "+args[0], vips().known)
		if dry && m.GetDeleted() {
			v.Text = func(t *cli.Table) { fmt.Fprintf(t, "virtual IP %s would be deleted\n", args[0]) }
		}
		return v, err
	})
}
