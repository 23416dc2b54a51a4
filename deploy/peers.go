package deploy

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// updatePeer updates the peer of a process whose entry has changed. The caller holds
// the node's lock.
func (n *Node) updatePeer(process string, e *members.Entry) {
	p := n.peers[process]
	if p != nil && (e == nil || p.Entry.Load().Incarnation != e.Incarnation) {
		delete(n.peers, process)
		go p.Close()
		p = nil
	}
	switch {
	case e == nil:
	case p == nil:
		n.peers[process] = members.NewPeer(&n.links, e)
	default:
		p.Entry.Store(e)
	}
}

// others returns the other processes.
func (n *Node) others() map[string]*members.Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.peers)
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
		var asked sync.WaitGroup
		for _, p := range n.others() {
			if p.Slow() {
				asked.Go(func() { p.Check(ctx) })
			}
		}
		asked.Wait()
	}
}

// setTaps makes packets reach the processes with observers, if this one holds
// switches. The caller holds the lock.
func (n *Node) setTaps(mine plan.Instance) {
	want := map[string]*members.Peer{}
	if slices.ContainsFunc(mine.Services, func(name string) bool { s := n.spec(name); return s != nil && (s.Pipeline || s.Beside != nil) }) && !n.apps.leaving.Load() {
		for process, e := range n.entries {
			if mine.Partition != "" && e.Partition != "" && e.Partition != mine.Partition {
				continue
			}
			p := n.peers[process]
			if p == nil && process != n.config.Process {
				continue
			}
			if slices.ContainsFunc(e.Apps, func(a members.AppState) bool { return a.Kind == apps.Observer.String() }) {
				want[process] = p
			}
		}
	}
	n.packets.SetObservers(want)
}

// rebuild makes a new view. The caller holds the lock.
func (n *Node) rebuild() {
	if n.current == nil {
		return
	}
	v := members.NewView(n.current, n.config.Process, n.entries, n.peers, n.config.Specs)
	old := n.links.View.Swap(v)
	close(old.Next)
	for _, s := range n.worker.Running().Services {
		if index, count, ok := v.Number(s.Spec.Name, n.entry.Partition); ok {
			s.SetReplicas(index, count)
		}
	}
	n.setTaps(v.Mine)
	n.subscribeRemote(v)
}
