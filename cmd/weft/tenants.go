package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

func tenantCommand() *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:   "tenant",
		Short: "Divide the network into isolated virtual networks",
		Long: `Divide the network into virtual networks of tenants, isolated from each other
and from the common network: each has its own space of Ethernet and IP
addresses. Members are ports, or hosts by their Ethernet address. Ports that are
no member of any belong to the common network. The controller keeps tenants and
networks over restarts.`,
		Example: `  weft tenant add red --max-hosts 100 --rate 50000
  weft tenant network red office --port 1/1 --port 2/1 --port 3/7:300
  weft tenant status`,
	}
	r.Flags(cmd)
	cmd.AddCommand(tenantAddCommand(&r), tenantDeleteCommand(&r), tenantListCommand(&r), tenantNetworkCommand(&r),
		tenantDeleteNetworkCommand(&r), tenantNetworksCommand(&r), tenantStatusCommand(&r))
	return cmd
}

func tenantAddCommand(r *cli.Remote) *cobra.Command {
	m := &api.Tenant{}
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a tenant, or change its limits",
		Example: `  weft tenant add red
  weft tenant add red --max-hosts 100 --rate 50000`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.Name = args[0]
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			t, err := c.TenantsClient.SetTenant(c.Ctx, &api.SetTenantRequest{Tenant: m})
			if err != nil {
				return err
			}
			return out.Print(cmd, t, func(w *cli.Table) { tenantsTable(w, []*api.Tenant{t}) })
		},
	}
	f := cmd.Flags()
	f.Uint32Var(&m.MaxHosts, "max-hosts", 0, "how many hosts it may have; those beyond are kept out; 0 is no limit")
	f.Uint32Var(&m.RateKbps, "rate", 0, "what its hosts may send into each switch, kilobits per second; 0 is no limit")
	f.Uint32Var(&m.BurstKbit, "burst", 0, "how much of --rate at once, kilobits; 0 lets the switch choose")
	f.Uint32Var(&m.MaxMembers, "max-members", 0, "how many members its networks may have; 0 is no limit")
	out.Flag(cmd)
	return cmd
}

func tenantDeleteCommand(r *cli.Remote) *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a tenant and all its networks",
		Example: "  weft tenant delete red",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.TenantsClient.DeleteTenant(c.Ctx, &api.DeleteTenantRequest{Name: args[0]})
			if err != nil {
				return err
			}
			what := fmt.Sprintf("tenant %s with %s", args[0], cli.Several(m.Networks, "network", "networks"))
			if err := printDeleted(&out, cmd, m, m.Deleted, what); err != nil || m.Deleted {
				return err
			}
			return fmt.Errorf("there was no tenant %s; weft tenant list shows those that are", args[0])
		},
	}
	out.Flag(cmd)
	return cmd
}

func tenantListCommand(r *cli.Remote) *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the tenants and their limits",
		Example: "  weft tenant list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.TenantsClient.ListTenants(c.Ctx, &api.ListTenantsRequest{})
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) { tenantsTable(t, m.Tenants) })
		},
	}
	out.Flag(cmd)
	return cmd
}

func tenantsTable(t *cli.Table, list []*api.Tenant) {
	t.Row("TENANT", "MAX HOSTS", "RATE kbit/s", "MAX MEMBERS")
	limit := func(n uint32) string {
		if n == 0 {
			return "none"
		}
		return strconv.Itoa(int(n))
	}
	for _, m := range list {
		t.Row(m.Name, limit(m.MaxHosts), limit(m.RateKbps), limit(m.MaxMembers))
	}
}

func tenantNetworkCommand(r *cli.Remote) *cobra.Command {
	var segment uint32
	var ports, hosts []string
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "network TENANT NAME",
		Short: "Make a virtual network, or replace its members",
		Long: `Make a virtual network, or replace its members: ports as SWITCH/PORT where its
frames are untagged, as SWITCH/PORT:VLAN where they have a tag, and hosts by their
Ethernet address. Inside the network one VLAN carries it, its segment, which is
given unless --segment says it. A port that is a member carries frames of its
networks only; others are dropped.`,
		Example: `  weft tenant network red office --port 1/1 --port 2/1
  weft tenant network blue lab --segment 200 --port 3/7:300 --host 02:00:00:00:00:09`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n := &api.TenantNetwork{Tenant: args[0], Name: args[1], Segment: segment}
			for _, s := range ports {
				m, err := readMember(s)
				if err != nil {
					return cli.Usagef(cmd, "--port %v", err)
				}
				n.Members = append(n.Members, m)
			}
			for _, s := range hosts {
				n.Members = append(n.Members, &api.TenantMember{Mac: s})
			}
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			if n, err = c.TenantsClient.SetNetwork(c.Ctx, &api.SetNetworkRequest{Network: n}); err != nil {
				return err
			}
			return out.Print(cmd, n, func(t *cli.Table) { networksTable(t, []*api.TenantNetwork{n}) })
		},
	}
	f := cmd.Flags()
	f.Uint32Var(&segment, "segment", 0, "the VLAN that carries it, 2 to 4094; 0 has one given")
	f.StringArrayVar(&ports, "port", nil, "a port, SWITCH/PORT or SWITCH/PORT:VLAN; may be repeated")
	f.StringArrayVar(&hosts, "host", nil, "a host, by its Ethernet address; may be repeated")
	out.Flag(cmd)
	return cmd
}

// readMember reads SWITCH/PORT or SWITCH/PORT:VLAN; a switch may have colons
// itself.
func readMember(s string) (*api.TenantMember, error) {
	wrong := fmt.Errorf("%q: want SWITCH/PORT or SWITCH/PORT:VLAN, such as 1/3:300", s)
	sw, rest, ok := strings.Cut(s, "/")
	if !ok {
		return nil, wrong
	}
	d, err := flow.ParseDPID(sw)
	if err != nil {
		return nil, err
	}
	port, vlan, tagged := strings.Cut(rest, ":")
	m := &api.TenantMember{Dpid: d.String()}
	n, err := strconv.ParseUint(port, 10, 32)
	if err != nil {
		return nil, wrong
	}
	m.Port = uint32(n)
	if tagged {
		if n, err = strconv.ParseUint(vlan, 10, 12); err != nil || n == 0 {
			return nil, wrong
		}
		m.Vlan = uint32(n)
	}
	return m, nil
}

func tenantDeleteNetworkCommand(r *cli.Remote) *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "delete-network TENANT NAME",
		Short:   "Delete a virtual network",
		Example: "  weft tenant delete-network red office",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.TenantsClient.DeleteNetwork(c.Ctx, &api.DeleteNetworkRequest{Tenant: args[0], Name: args[1]})
			if err != nil {
				return err
			}
			if err := printDeleted(&out, cmd, m, m.Deleted, "network "+args[0]+"/"+args[1]); err != nil || m.Deleted {
				return err
			}
			return fmt.Errorf("there was no network %s/%s; weft tenant networks shows those that are", args[0], args[1])
		},
	}
	out.Flag(cmd)
	return cmd
}

func tenantNetworksCommand(r *cli.Remote) *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "networks [TENANT]",
		Short:   "List the virtual networks and their members",
		Example: "  weft tenant networks red",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.TenantsClient.ListNetworks(c.Ctx, &api.ListNetworksRequest{Tenant: strings.Join(args, "")})
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) { networksTable(t, m.Networks) })
		},
	}
	out.Flag(cmd)
	return cmd
}

func networksTable(t *cli.Table, list []*api.TenantNetwork) {
	t.Row("TENANT", "NETWORK", "SEGMENT", "MEMBERS")
	for _, n := range list {
		var members []string
		for _, m := range n.Members {
			text := m.Mac
			if text == "" {
				text = fmt.Sprintf("%s/%d", m.Dpid, m.Port)
			}
			if m.Vlan != 0 {
				text += fmt.Sprintf(":%d", m.Vlan)
			}
			members = append(members, text)
		}
		t.Row(n.Tenant, n.Name, n.Segment, strings.Join(members, " "))
	}
}

func tenantStatusCommand(r *cli.Remote) *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say how far each switch keeps the networks apart, and what tenants use",
		Long: `Say how far each switch keeps the networks apart, and what tenants use of their
limits. KEPT OUT are hosts beyond a tenant's limit.`,
		Example: "  weft tenant status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.TenantsClient.GetTenantsStatus(c.Ctx, &api.GetTenantsStatusRequest{})
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) {
				t.Row("TENANT", "NETWORKS", "MEMBERS", "HOSTS", "KEPT OUT")
				for _, u := range m.Tenants {
					t.Row(u.Tenant, u.Networks, u.Members, u.Hosts, u.HostsRefused)
				}
				fmt.Fprintln(t)
				t.Row("SWITCH", "STATE", "MEMBERS", "ENTRIES", "REASON")
				for _, s := range m.Switches {
					t.Row(s.Dpid, s.State, s.Members, s.Entries, s.Reason)
				}
			})
		},
	}
	out.Flag(cmd)
	return cmd
}
