package node

import (
	"context"
	"log/slog"
	"sync"
)

// Run looks after the nodes of a machine until ctx ends.
func Run(ctx context.Context, c *Config, log *slog.Logger) {
	var work sync.WaitGroup
	ports := map[string][]Port{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		ports[n.Namespace] = append(ports[n.Namespace], n.Ports...)
		work.Go(func() { n.keepEntries(ctx, log) })
	}
	for namespace, of := range ports {
		work.Go(func() { keepCarriers(ctx, namespace, of, log) })
	}
	work.Wait()
}
