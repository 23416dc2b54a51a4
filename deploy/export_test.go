package deploy

import "time"

// SetWithdrawAfter makes a node, before it runs, wait that long for what a
// restarted publisher tells again.
func (n *Node) SetWithdrawAfter(d time.Duration) { n.withdrawAfter = d }
