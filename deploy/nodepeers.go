package deploy

import (
	"context"
	"sync"
	"time"
)

// meet updates the peer of a process whose entry has changed. The caller holds
// the node's lock.
func (n *Node) meet(process string, e *Entry) {
	p := n.peers[process]
	if p != nil && (e == nil || p.entry.Load().Incarnation != e.Incarnation) {
		delete(n.peers, process)
		go p.close()
		p = nil
	}
	switch {
	case e == nil:
	case p == nil:
		n.peers[process] = newPeer(&n.links, e)
	default:
		p.entry.Store(e)
	}
}

// watchPeers pings peers whose answer is overdue, and hangs up on those that do
// not answer the ping.
func (n *Node) watchPeers(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.mu.Lock()
		var slow []*peer
		for _, p := range n.peers {
			if p.slow() {
				slow = append(slow, p)
			}
		}
		n.mu.Unlock()
		var asked sync.WaitGroup
		for _, p := range slow {
			asked.Go(func() { p.check(ctx) })
		}
		asked.Wait()
	}
}

// rebuild makes a new view. The caller holds the lock.
func (n *Node) rebuild() {
	if n.current == nil {
		return
	}
	v := newView(n.current, n.config.Process, n.entries, n.peers, n.config.Specs)
	old := n.links.view.Swap(v)
	close(old.next)
	for _, s := range n.worker.Running().Services {
		if index, count, ok := v.number(s.Spec.Name, n.entry.Partition); ok {
			s.SetReplicas(index, count)
		}
	}
	n.setTaps(v.mine)
	n.supply(v)
}
