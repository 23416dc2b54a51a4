package deploy

import (
	"context"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
)

// cluster is the other processes as the services of this one see them
// (Cluster).
type cluster struct{ n *Node }

// Now returns the time of day by the store's clock (Cluster).
func (c cluster) Now() time.Time { return c.n.members.now() }

// Specs returns the declarations of the services of the plan in force (Cluster).
func (c cluster) Specs() []weft.Spec { return c.n.specs() }

// Directed reports whether calls of a method go to partitions (Cluster).
func (c cluster) Directed(m weft.Method) bool {
	_, _, ok := c.n.directed(m)
	return ok
}

// Direct makes a call to partitions (Cluster).
func (c cluster) Direct(ctx context.Context, from *local.Service, m weft.Method, req any) (any, error) {
	return c.n.direct(ctx, from, m, req)
}

// Call makes a call to another process (Cluster).
func (c cluster) Call(ctx context.Context, from *local.Service, m weft.Method, req any) (any, error) {
	return c.n.call(ctx, from, m, req)
}

// Stray reports whether a subscriber here should ignore an event (Cluster).
func (c cluster) Stray(to, from *local.Service, sub *local.Subject, key string, event any) bool {
	return c.n.members.links.View.Load().Stray(to.Spec.Name, sub, key, event, from.Partition())
}

// Note records a retained event of a publisher here (Cluster).
func (c cluster) Note(from *local.Service, sub *local.Subject, key string, event any) {
	c.n.facts.note(sub, key, event, publisherOf(from))
}

// Open opens the way through other processes for a session (Cluster).
func (c cluster) Open(owner *local.Service, sw flow.DPID, later weft.Later) local.Crossing {
	return c.n.packets.Open(owner, sw, later)
}
