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
)

// tidyNetwork brings members into order.
func tidyNetwork(o proto.Message) {
	m := o.(*api.TenantNetwork)
	for _, x := range m.Members {
		x.Mac = strings.ToLower(x.Mac)
	}
	slices.SortFunc(m.Members, func(a, b *api.TenantMember) int {
		return cmp.Or(cmp.Compare(a.Mac, b.Mac), cmp.Compare(a.Dpid, b.Dpid), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Vlan, b.Vlan))
	})
}

// addMemberHosts adds --host, which sets members as --port does.
func addMemberHosts(cmd *cobra.Command) {
	cmd.Flags().StringArray("host", nil, "a host, by its Ethernet address; may be repeated")
}

func setMemberHosts(cmd *cobra.Command, _ []string, request proto.Message) error {
	n := request.(*api.SetNetworkRequest).Network
	hosts, err := cmd.Flags().GetStringArray("host")
	for _, mac := range hosts {
		n.Members = append(n.Members, &api.TenantMember{Mac: mac})
	}
	return err
}

// readMember reads SWITCH:PORT or SWITCH:PORT:VLAN; behind a slash in place of the first colon
// a switch may have colons itself.
func readMember(s string) (*api.TenantMember, error) {
	wrong := fmt.Errorf("%q: want SWITCH/PORT or SWITCH/PORT:VLAN, such as 1/3:300", s)
	sw, rest, ok := strings.Cut(s, "/")
	if !ok {
		sw, rest, ok = strings.Cut(s, ":")
	}
	if !ok {
		return nil, wrong
	}
	sw, err := cli.SwitchText(sw)
	if err != nil {
		return nil, err
	}
	port, vlan, tagged := strings.Cut(rest, ":")
	m := &api.TenantMember{Dpid: sw}
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

// membersText writes the members of a virtual network.
func membersText(m proto.Message) string {
	var members []string
	for _, m := range m.(*api.TenantNetwork).Members {
		text := m.Mac
		if text == "" {
			text = fmt.Sprintf("%s/%d", m.Dpid, m.Port)
		}
		if m.Vlan != 0 {
			text += fmt.Sprintf(":%d", m.Vlan)
		}
		members = append(members, text)
	}
	return strings.Join(members, " ")
}

func writeTenantsStatus(t *cli.Table, _, answer proto.Message) {
	writeList(t, answer, "tenants")
	fmt.Fprintln(t)
	writeList(t, answer, "switches")
}
