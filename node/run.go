package node

import (
	"context"
	"log/slog"
	"sync"

	"github.com/weft-sdn/weft/api"
)

// Report tells a controller how nodes do and returns what it wants of them.
type Report func(context.Context, *api.ReportNodesRequest) (*api.ReportNodesResponse, error)

// Run looks after the nodes of a machine until ctx ends, and reports to a
// controller, if report is not nil, for as long as it answers.
func Run(ctx context.Context, c *Config, report Report, log *slog.Logger) {
	var work sync.WaitGroup
	ports := map[string][]Port{}
	databases := map[string]*database{}
	a := &agent{report: report, log: log, kick: make(chan struct{}, 1)}
	for i := range c.Nodes {
		k := &keeping{Node: &c.Nodes[i], log: log.With("node", c.Nodes[i].Name), kick: make(chan struct{}, 1)}
		ports[k.Namespace] = append(ports[k.Namespace], k.Ports...)
		if k.DPID != 0 {
			if databases[k.Database] == nil {
				databases[k.Database] = &database{socket: k.Database, changed: a.changed}
			}
			k.db = databases[k.Database]
			a.nodes = append(a.nodes, k)
		}
		work.Go(func() { k.keepEntries(ctx) })
	}
	for namespace, of := range ports {
		work.Go(func() { keepCarriers(ctx, namespace, of, log) })
	}
	for _, d := range databases {
		work.Go(func() { d.follow(ctx) })
	}
	for _, k := range a.nodes {
		if k.Routing != "" {
			work.Go(func() { k.keepCosts(ctx) })
		}
	}
	if len(a.nodes) > 0 {
		work.Go(func() { a.keepTunnels(ctx) })
		work.Go(func() { a.keepRouting(ctx) })
		if report != nil {
			work.Go(func() { a.keepReporting(ctx) })
		}
	}
	work.Wait()
}
