package discovery

import "testing"

// TestLinksWhileAFarSouthboundIsAway has the far switch of a link be out of
// reach: the link is left alone, until a probe can be sent to the switch, or it
// has left.
func TestLinksWhileAFarSouthboundIsAway(t *testing.T) {
	topo := newTopology(DefaultConfig(), 1)
	near, far := &datapath{connected: true}, &datapath{connected: true}
	l := &link{src: &port{dp: near}, dst: &port{dp: far}, state: up}
	now := int64(1e12)
	l.heard = now
	topo.recordUnreached(now, []*port{l.dst})
	if l.doubtedUntil(now) != now+doubtFor {
		t.Errorf("the link is left alone until %d, want %d", l.doubtedUntil(now), now+doubtFor)
	}
	topo.recordSent(now+1, []*port{l.dst}, now)
	if l.doubtedUntil(now+1) != 0 {
		t.Error("the link is left alone though the switch can be reached")
	}
	far.connected = false
	topo.recordUnreached(now, []*port{l.dst})
	if l.doubtedUntil(now) != 0 {
		t.Error("the link of a switch that has left is left alone")
	}
}
