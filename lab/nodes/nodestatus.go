package nodes

import (
	"context"
	"path/filepath"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/node"
)

// NodeStatus is how a hybrid node or router does.
type NodeStatus struct {
	Name string        `json:"name"`
	Kind topology.Kind `json:"kind"`
	// OSPFFull is with how many neighbours its OSPF has settled; OSPF6Full is that
	// of OSPFv3. OSPFExpected is how many there are, by links that are not down.
	OSPFFull     int `json:"ospf_full"`
	OSPF6Full    int `json:"ospf6_full"`
	OSPFExpected int `json:"ospf_expected"`
	// Control is "connected" or "disconnected" from its controllers, as Open
	// vSwitch says every five seconds, or "none" if it has no controller.
	Control string `json:"control"`
	// Dark says that the node's bridge lacks entries of the node's own (package
	// node), so that nobody reaches it.
	Dark bool `json:"dark"`
	// Loopback and Loopback6 are its addresses.
	Loopback  string `json:"loopback"`
	Loopback6 string `json:"loopback6,omitempty"`
	Namespace string `json:"namespace"`
	// Routing is the directory by which vtysh reaches it: vtysh --vty_socket.
	Routing string `json:"routing"`
}

// NodeStatus is how a node does, but for its session; what does not answer in
// time counts as not there.
func (s Routers) NodeStatus(ctx context.Context, n *layout.Node) NodeStatus {
	st := NodeStatus{
		Name: n.Name, Kind: n.Kind, OSPFExpected: s.Expected(n), Control: "none", Loopback: n.Loopback.String(),
		Namespace: machine.HostNetns(s.Name, n.Name), Routing: RoutingOf(s.Lab).RoutingDir(n),
	}
	full := func(daemon, command string) int {
		n, err := node.Adjacencies(ctx, filepath.Join(RoutingOf(s.Lab).RoutingDir(n), daemon+".vty"), command)
		if err != nil {
			return 0 // the daemon does not answer
		}
		return n
	}
	st.OSPFFull = full("ospfd", node.OSPFNeighbours)
	if !s.Topology.Routing.IPv4Only {
		st.Loopback6 = n.Loopback6.String()
		st.OSPF6Full = full("ospf6d", node.OSPF6Neighbours)
	}
	if n.Kind == topology.KindHybrid {
		e := s.Entity(n)
		st.Dark = e.Dark(ctx)
	}
	return st
}
