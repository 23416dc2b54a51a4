package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

// tenantCommand makes the command by its name, which is that of the service, or
// by the one that it had.
func tenantCommand(name string) *cobra.Command {
	var r cli.Remote
	cmd := &cobra.Command{
		Use:    name,
		Hidden: name != "tenants",
		Short:  "Divide the network into isolated virtual networks",
		Long: `Divide the network into virtual networks of tenants, isolated from each other
and from the common network: each has its own space of Ethernet and IP
addresses. Members are ports, or hosts by their Ethernet address. Ports that are
no member of any belong to the common network. The controller keeps tenants and
networks over restarts.`,
		Example: `  weft tenants add red --max-hosts 100 --rate 50000
  weft tenants network red office --port 1/1 --port 2/1 --port 3/7:300
  weft tenants status`,
	}
	r.Flags(cmd)
	cmd.AddCommand(tenantAddCommand(&r), tenantDeleteCommand(&r), tenantListCommand(&r), tenantNetworkCommand(&r),
		tenantDeleteNetworkCommand(&r), tenantNetworksCommand(&r), tenantStatusCommand(&r),
		tenantKind().get(&r, "weft tenants get red"), applyTyped(&r, "weft tenants", "tenants and networks", func() []declared {
			return []declared{&typedDesired[*api.Tenant]{typedKind: tenantKind()}, &typedDesired[*api.TenantNetwork]{typedKind: networkKind()}}
		}))
	return cmd
}

// tenantKind is the tenants, networkKind their virtual networks.
func tenantKind() *typedKind[*api.Tenant] {
	return &typedKind[*api.Tenant]{
		known: "weft tenants list", one: "tenant", key: "tenants",
		name: (*api.Tenant).GetName,
		list: func(c *cli.Controller) (proto.Message, error) { return c.ListTenants(c.Ctx, &api.ListTenantsRequest{}) },
		set: func(c *cli.Controller, m *api.Tenant) (*api.Tenant, error) {
			return c.SetTenant(c.Ctx, &api.SetTenantRequest{Tenant: m})
		},
		remove: func(c *cli.Controller, m *api.Tenant) (cli.Deletion, error) {
			return c.DeleteTenant(c.Ctx, &api.DeleteTenantRequest{Name: m.Name})
		},
		table: tenantsTable,
		tidy:  func(m *api.Tenant) { m.Meter = 0 },
	}
}

func networkKind() *typedKind[*api.TenantNetwork] {
	return &typedKind[*api.TenantNetwork]{
		known: "weft tenants networks", one: "network", key: "networks",
		name: func(m *api.TenantNetwork) string { return m.GetTenant() + "/" + m.GetName() },
		list: func(c *cli.Controller) (proto.Message, error) {
			return c.ListNetworks(c.Ctx, &api.ListNetworksRequest{})
		},
		set: func(c *cli.Controller, m *api.TenantNetwork) (*api.TenantNetwork, error) {
			return c.SetNetwork(c.Ctx, &api.SetNetworkRequest{Network: m})
		},
		remove: func(c *cli.Controller, m *api.TenantNetwork) (cli.Deletion, error) {
			return c.DeleteNetwork(c.Ctx, &api.DeleteNetworkRequest{Tenant: m.Tenant, Name: m.Name})
		},
		table: networksTable,
		tidy:  tidyNetwork,
		given: []string{"segment"},
	}
}

// tidyNetwork brings members into order.
func tidyNetwork(m *api.TenantNetwork) {
	for _, x := range m.Members {
		if sw, err := flow.ParseDPID(x.Dpid); err == nil {
			x.Dpid = sw.String()
		}
		x.Mac = strings.ToLower(x.Mac)
	}
	slices.SortFunc(m.Members, func(a, b *api.TenantMember) int {
		return cmp.Or(cmp.Compare(a.Mac, b.Mac), cmp.Compare(a.Dpid, b.Dpid), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Vlan, b.Vlan))
	})
}

func tenantAddCommand(r *cli.Remote) *cobra.Command {
	m := &api.Tenant{}
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a tenant, or change its limits",
		Example: `  weft tenants add red
  weft tenants add red --max-hosts 100 --rate 50000`,
		Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.Uint32Var(&m.MaxHosts, "max-hosts", 0, "how many hosts it may have; those beyond are kept out; 0 is no limit")
	f.Uint32Var(&m.RateKbps, "rate", 0, "what its hosts may send into each switch, kilobits per second; 0 is no limit")
	f.Uint32Var(&m.BurstKbit, "burst", 0, "how much of --rate at once, kilobits; 0 lets the switch choose")
	f.Uint32Var(&m.MaxMembers, "max-members", 0, "how many members its networks may have; 0 is no limit")
	return tenantKind().add(r, cmd, func(_ *cobra.Command, args []string) (*api.Tenant, error) {
		m.Name = args[0]
		return m, nil
	})
}

func tenantDeleteCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a tenant and all its networks",
		Example: "  weft tenants delete red",
		Args:    cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.DeleteTenant(c.Ctx, &api.DeleteTenantRequest{Name: args[0]})
		what := "tenant " + args[0]
		if m.GetDeleted() {
			what += " with " + cli.Several(m.Networks, "network", "networks")
		}
		return cli.Deleted(m, err, what, "weft tenants list")
	})
}

func tenantListCommand(r *cli.Remote) *cobra.Command {
	return tenantKind().lists(r, &cobra.Command{
		Use:     "list [NAME]",
		Short:   "List the tenants and their limits",
		Example: "  weft tenants list -o json",
	})
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
	cmd := &cobra.Command{
		Use:   "network TENANT NAME",
		Short: "Make a virtual network, or replace its members",
		Long: `Make a virtual network, or replace its members: ports as SWITCH/PORT where its
frames are untagged, as SWITCH/PORT:VLAN where they have a tag, and hosts by their
Ethernet address. Inside the network one VLAN carries it, its segment, which is
given unless --segment says it. A port that is a member carries frames of its
networks only; others are dropped.`,
		Example: `  weft tenants network red office --port 1/1 --port 2/1
  weft tenants network blue lab --segment 200 --port 3/7:300 --host 02:00:00:00:00:09`,
		Args: cobra.ExactArgs(2),
	}
	f := cmd.Flags()
	f.Uint32Var(&segment, "segment", 0, "the VLAN that carries it, 2 to 4094; 0 has one given")
	f.StringArrayVar(&ports, "port", nil, "a port, SWITCH/PORT or SWITCH/PORT:VLAN; may be repeated")
	f.StringArrayVar(&hosts, "host", nil, "a host, by its Ethernet address; may be repeated")
	return networkKind().add(r, cmd, func(cmd *cobra.Command, args []string) (*api.TenantNetwork, error) {
		n := &api.TenantNetwork{Tenant: args[0], Name: args[1], Segment: segment}
		for _, s := range ports {
			m, err := readMember(s)
			if err != nil {
				return nil, cli.Usagef(cmd, "--port %v", err)
			}
			n.Members = append(n.Members, m)
		}
		for _, s := range hosts {
			n.Members = append(n.Members, &api.TenantMember{Mac: s})
		}
		return n, nil
	})
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
	return networkKind().delete(r, &cobra.Command{
		Use:     "delete-network TENANT NAME",
		Short:   "Delete a virtual network",
		Example: "  weft tenants delete-network red office",
	}, func(args []string) *api.TenantNetwork { return &api.TenantNetwork{Tenant: args[0], Name: args[1]} })
}

func tenantNetworksCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "networks [TENANT]",
		Short:   "List the virtual networks and their members",
		Example: "  weft tenants networks red",
		Args:    cobra.MaximumNArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.ListNetworks(c.Ctx, &api.ListNetworksRequest{Tenant: strings.Join(args, "")})
		return cli.View{Value: m, Text: func(t *cli.Table) { networksTable(t, m.Networks) }}, err
	})
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
	return cli.Query(r, &cobra.Command{
		Use:   "status",
		Short: "Say how far each switch keeps the networks apart, and what tenants use",
		Long: `Say how far each switch keeps the networks apart, and what tenants use of their
limits. KEPT OUT are hosts beyond a tenant's limit.`,
		Example: "  weft tenants status",
		Args:    cobra.NoArgs,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.GetTenantsStatus(c.Ctx, &api.GetTenantsStatusRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			t.Row("TENANT", "NETWORKS", "MEMBERS", "HOSTS", "KEPT OUT")
			for _, u := range m.Tenants {
				t.Row(u.Tenant, u.Networks, u.Members, u.Hosts, u.HostsRefused)
			}
			fmt.Fprintln(t)
			t.Row("SWITCH", "STATE", "MEMBERS", "ENTRIES", "REASON")
			for _, s := range m.Switches {
				t.Row(s.Dpid, s.State, s.Members, s.Entries, s.Reason)
			}
		}}, err
	})
}
