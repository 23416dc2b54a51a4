package deploy

import (
	"context"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/members"
)

// SetWithdrawAfter makes a node, before it runs, wait that long for what a
// restarted publisher tells again.
func (n *Node) SetWithdrawAfter(d time.Duration) { n.facts.withdrawAfter = d }

// DecideBy has a node decide about a worker by a plan and figures, as if it were
// the one that decides. It returns the decision; nil if nothing was to be done.
func (n *Node) DecideBy(ctx context.Context, current *members.Current, worker string, figures []*api.ProcessWork) *api.ScalingDecision {
	w := &scaled{start: firstStart}
	return n.scaling.scaleWorker(ctx, current, current.InForce().Worker(worker), w, figures, n.members.now())
}
