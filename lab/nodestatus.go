package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft/node"
)

// NodeStatus is how a hybrid node or router does.
type NodeStatus struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
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

// Nodes returns how the hybrid nodes and routers do, in the order of the topology.
func (l *Lab) Nodes(ctx context.Context) ([]NodeStatus, error) {
	s, err := loadState(l.state.Name) // links may have changed
	if err != nil {
		return nil, err
	}
	control, err := s.sessions(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]NodeStatus, len(s.Nodes))
	var g errgroup.Group
	g.SetLimit(64) // most of the time is waiting for a busy Open vSwitch
	for i := range s.Nodes {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			all[i] = s.nodeStatus(ctx, &s.Nodes[i])
			if c, ok := control[all[i].Name]; ok {
				all[i].Control = c
			}
			return nil
		})
	}
	return all, errors.Join(g.Wait(), ctx.Err())
}

// nodeStatus is how a node does, but for its session; what does not answer in
// time counts as not there.
func (s *state) nodeStatus(ctx context.Context, n *labNode) NodeStatus {
	st := NodeStatus{
		Name: n.Name, Kind: n.Kind, OSPFExpected: s.expected(n), Control: "none", Loopback: n.Loopback.String(),
		Namespace: hostNetns(s.Name, n.Name), Routing: s.routingDir(n),
	}
	full := func(daemon, command string) int {
		n, err := node.Adjacencies(ctx, filepath.Join(s.routingDir(n), daemon+".vty"), command)
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
	if n.Kind == KindHybrid {
		e := s.entity(n)
		st.Dark = e.Dark(ctx)
	}
	return st
}

// expected is how many neighbours a node's OSPF has when all is well.
func (s *state) expected(n *labNode) int {
	count := 0
	for _, p := range n.routed() {
		if s.Wires[p.Wire].State == LinkIsDown {
			continue
		}
		for _, name := range p.Neighbours {
			if p.Role == roleLink || s.inSegment(name, p) {
				count++
			}
		}
	}
	return count
}

// inSegment reports whether a node's link to the segment of another's port is not down.
func (s *state) inSegment(name string, of *nodePort) bool {
	for i := range s.Nodes {
		if s.Nodes[i].Name != name {
			continue
		}
		for _, p := range s.Nodes[i].routed() {
			if p.Role == roleSegment && p.IPv4.Masked() == of.IPv4.Masked() {
				return s.Wires[p.Wire].State != LinkIsDown
			}
		}
	}
	return false
}

// Control returns, by the names of those switches that have controllers, whether
// they are connected to one: "connected" or "disconnected".
func (l *Lab) Control(ctx context.Context) (map[string]string, error) { return l.state.sessions(ctx) }

// sessions returns, by the names of those switches that have controllers,
// whether they are connected to one.
func (s *state) sessions(ctx context.Context) (map[string]string, error) {
	is := map[string]string{}
	name := map[string]string{}
	for sw, bridge := range s.Bridges {
		name[bridge] = sw
	}
	for i := range s.Nodes {
		name[s.Nodes[i].Short] = s.Nodes[i].Name
	}
	for _, o := range s.allOVS() {
		var rows struct{ Data [][]any }
		list := func(columns, table string) error {
			out, err := o.vsctl(ctx, "--format=json", "--columns="+columns, "list", table)
			if err != nil {
				return err
			}
			rows.Data = nil
			if err := json.Unmarshal(out, &rows); err != nil {
				return fmt.Errorf("read the table %s from ovs-vsctl: %w", table, err)
			}
			return nil
		}
		if err := list("_uuid,is_connected", "Controller"); err != nil {
			return nil, err
		}
		connected := map[string]bool{}
		for _, row := range rows.Data {
			for _, id := range uuids(row[0]) {
				connected[id], _ = row[1].(bool)
			}
		}
		if err := list("name,controller", "Bridge"); err != nil {
			return nil, err
		}
		for _, row := range rows.Data {
			bridge, _ := row[0].(string)
			for _, id := range uuids(row[1]) {
				if n := name[bridge]; connected[id] {
					is[n] = "connected"
				} else if is[n] == "" {
					is[n] = "disconnected"
				}
			}
		}
	}
	return is, nil
}

// uuids returns the identifiers in a value of OVSDB (RFC 7047, section 5.1): one, or a set.
func uuids(v any) (ids []string) {
	pair, _ := v.([]any)
	if len(pair) != 2 {
		return nil
	}
	if id, ok := pair[1].(string); ok && pair[0] == "uuid" {
		return []string{id}
	}
	set, _ := pair[1].([]any)
	for _, x := range set {
		ids = append(ids, uuids(x)...)
	}
	return ids
}
