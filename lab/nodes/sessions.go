package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/lab/topology"
)

// Session is what a switch has with one of its controllers, as its Open vSwitch says.
type Session struct {
	Controller string // as in Topology.Controllers
	Connected  bool
	Role       string // master, slave or equal; empty if it is not connected
}

// Connected returns "connected" if one of a switch's sessions is, else "disconnected";
// empty without any.
func Connected(sessions []Session) string {
	switch {
	case len(sessions) == 0:
		return ""
	case slices.ContainsFunc(sessions, func(s Session) bool { return s.Connected }):
		return "connected"
	}
	return "disconnected"
}

func (s Switches) Sessions(ctx context.Context) (map[string][]Session, error) {
	by := map[string]*topology.Switch{} // by the name of its bridge
	for i := range s.Topology.Switches {
		sw := &s.Topology.Switches[i]
		if bridge := s.Bridges[sw.Name]; bridge != "" {
			by[bridge] = sw
		}
	}
	for i := range s.Nodes {
		if k := slices.IndexFunc(s.Topology.Switches, func(sw topology.Switch) bool { return sw.Name == s.Nodes[i].Name }); k >= 0 {
			by[s.Nodes[i].Short] = &s.Topology.Switches[k]
		}
	}
	is := map[string][]Session{}
	for _, o := range s.AllOVS() {
		controllers, err := o.Table(ctx, "_uuid,target,is_connected,role", "Controller")
		if err != nil {
			return nil, err
		}
		has := map[string][]any{}
		for _, row := range controllers {
			for _, id := range UUIDs(row[0]) {
				has[id] = row
			}
		}
		bridges, err := o.Table(ctx, "name,controller", "Bridge")
		if err != nil {
			return nil, err
		}
		for _, row := range bridges {
			bridge, _ := row[0].(string)
			sw, ids := by[bridge], UUIDs(row[1])
			if sw == nil || len(ids) == 0 {
				continue
			}
			sessions := make([]Session, len(s.Topology.Controllers))
			for k, c := range s.Topology.Controllers {
				sessions[k].Controller = c
			}
			targets := s.Targets(sw)
			for _, id := range ids {
				if c := has[id]; c != nil {
					if k := slices.Index(targets, fmt.Sprint(c[1])); k >= 0 && k < len(sessions) {
						sessions[k].Connected, _ = c[2].(bool)
						sessions[k].Role = roleOf(c[3], sessions[k].Connected)
					}
				}
			}
			is[sw.Name] = sessions
		}
	}
	return is, nil
}

// roleOf returns a role as OpenFlow calls it; that of who has not asked for one is equal.
func roleOf(v any, connected bool) string {
	switch role, _ := v.(string); {
	case !connected:
		return ""
	case role == "other":
		return "equal"
	default:
		return role
	}
}

// Table returns the rows of a table of OVSDB, as JSON.
func (o OVS) Table(ctx context.Context, columns, table string) ([][]any, error) {
	out, err := o.VSCtl(ctx, "--format=json", "--columns="+columns, "list", table)
	if err != nil {
		return nil, err
	}
	var rows struct{ Data [][]any }
	if err := json.Unmarshal(out, &rows); err != nil {
		return nil, fmt.Errorf("read the table %s from ovs-vsctl: %w", table, err)
	}
	return rows.Data, nil
}

// UUIDs returns the identifiers in a value of OVSDB (RFC 7047, section 5.1): one, or a set.
func UUIDs(v any) (ids []string) {
	pair, _ := v.([]any)
	if len(pair) != 2 {
		return nil
	}
	if id, ok := pair[1].(string); ok && pair[0] == "uuid" {
		return []string{id}
	}
	set, _ := pair[1].([]any)
	for _, x := range set {
		ids = append(ids, UUIDs(x)...)
	}
	return ids
}
