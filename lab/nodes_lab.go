package lab

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/nodes"
)

// Management returns the second interface of a host; false if it has none.
func (l *Lab) Management(host string) (layout.Management, bool) {
	m, ok := l.state.Manage[host]
	return m, ok
}

// Nodes returns how the hybrid nodes and routers do, in the order of the topology.
func (l *Lab) Nodes(ctx context.Context) ([]nodes.NodeStatus, error) {
	s, err := layout.Load(l.state.Name) // links may have changed
	if err != nil {
		return nil, err
	}
	control, err := nodes.SwitchesOf(s).Sessions(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]nodes.NodeStatus, len(s.Nodes))
	var g errgroup.Group
	g.SetLimit(64) // most of the time is waiting for a busy Open vSwitch
	for i := range s.Nodes {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			all[i] = nodes.RoutersOf(s).NodeStatus(ctx, &s.Nodes[i])
			if c := control[all[i].Name]; len(c) > 0 {
				all[i].Control = nodes.Connected(c)
			}
			return nil
		})
	}
	return all, errors.Join(g.Wait(), ctx.Err())
}

// Sessions returns, by the names of those switches that have controllers, what they
// have with each, in the order of Topology.Controllers.
func (l *Lab) Sessions(ctx context.Context) (map[string][]nodes.Session, error) {
	return nodes.SwitchesOf(l.state).Sessions(ctx)
}
