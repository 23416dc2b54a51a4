package nodes

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Bounds of what an agent may say.
const (
	mostNodes = 1000
	mostPorts = 4096
	mostName  = 63
	mostError = 255
	mostMTU   = 65535
)

// checkReport returns what is wrong with a report as a whole.
func checkReport(q *api.ReportNodesRequest) error {
	if len(q.GetNodes()) > mostNodes {
		return api.Errorf(codes.InvalidArgument, "%d nodes: want at most %d in a report: have several agents", len(q.Nodes), mostNodes)
	}
	seen := map[string]bool{}
	for i, n := range q.GetNodes() {
		sw, err := flow.ParseDPID(n.GetDpid())
		if err != nil {
			return api.Errorf(codes.InvalidArgument, "node %d: %w", i+1, err)
		}
		n.Dpid = sw.String()
		if seen[n.Dpid] {
			return api.Errorf(codes.InvalidArgument, "node %v stands twice in the report", sw)
		}
		seen[n.Dpid] = true
	}
	return nil
}

// checkNode returns what is wrong with the report of a node.
func checkNode(n *api.NodeReport) error {
	if err := text("name", n.Name, mostName); err != nil {
		return err
	}
	for _, a := range []struct {
		key, text string
		v6        bool
	}{{"loopback", n.Loopback, false}, {"loopback6", n.Loopback6, true}} {
		if a.text == "" {
			continue
		}
		ip, err := netip.ParseAddr(a.text)
		if err != nil || ip.Zone() != "" || ip.Is6() != a.v6 || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLoopback() {
			return fmt.Errorf("%s: %.60q: want an address of the node", a.key, a.text)
		}
	}
	if len(n.Ports) > mostPorts {
		return fmt.Errorf("%d ports: want at most %d", len(n.Ports), mostPorts)
	}
	last := uint32(0)
	for _, p := range n.Ports {
		switch {
		case p.Port <= last || !flow.Port(p.Port).Physical():
			return fmt.Errorf("port %d: want numbers of ports, each once and in order", p.Port)
		case !knownRole(p.Role):
			return fmt.Errorf("port %d: role %.20q: want link, access, internal or tunnel", p.Port, p.Role)
		case !knownBFD(p.Bfd):
			return fmt.Errorf("port %d: bfd %.20q: want admin_down, down, init, up or nothing", p.Port, p.Bfd)
		case p.Mtu > mostMTU:
			return fmt.Errorf("port %d: mtu %d: want at most %d", p.Port, p.Mtu, mostMTU)
		case p.Internal != 0 && !flow.Port(p.Internal).Physical():
			return fmt.Errorf("port %d: internal %d: want the number of a port", p.Port, p.Internal)
		case p.RoutedMac != "" && !unicastMAC(p.RoutedMac):
			return fmt.Errorf("port %d: routed_mac %.20q: want the Ethernet address of an interface", p.Port, p.RoutedMac)
		}
		if err := text("name of a port", p.Name, mostName); err != nil {
			return err
		}
		if err := text("error of a port", p.Error, mostError); err != nil {
			return err
		}
		last = p.Port
	}
	return nil
}

func text(key, s string, most int) error {
	if len(s) > most || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%s: %.80q: want at most %d octets, without control characters", key, s, most)
	}
	return nil
}

func unicastMAC(s string) bool {
	mac, err := flow.ParseMAC(s)
	return err == nil && mac != flow.MAC{} && mac[0]&1 == 0
}

func knownRole(r string) bool {
	return r == "link" || r == "access" || r == "internal" || r == "tunnel"
}

func knownBFD(s string) bool {
	return s == "" || s == bfdUp || s == "down" || s == "init" || s == "admin_down"
}

const bfdUp = "up"
