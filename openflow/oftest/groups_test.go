package oftest

import (
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

func watching(p flow.Port, list ...flow.Action) flow.Bucket {
	b := bucketOf(list...)
	b.WatchPort = p
	return b
}

// through sends all packets of port 4 through a group.
func through(t *testing.T, c *controller, g flow.Group) {
	t.Helper()
	c.fine(c.group(flow.Add, g))
	c.add(flow.Entry{Match: flow.Match{}.WithInPort(4), Apply: []flow.Action{flow.ToGroup(g.ID)}})
}

func TestGroupAll(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	through(t, c, flow.Group{Kind: flow.GroupKindAll, ID: 1, Buckets: []flow.Bucket{
		bucketOf(flow.SetEthDst(mac(9)), flow.Output(1)), bucketOf(flow.Output(2)), bucketOf(flow.Output(4)), bucketOf(flow.SetEthDst(mac(8)))}})
	e := s.Receive(4, udp(1, 2))
	wantPorts(t, e, 1, 2) // not back, and not out of nowhere
	if e.Frames[0].Data[5] != 9 || e.Frames[1].Data[5] != 2 {
		t.Error("a bucket's change is seen by the next")
	}
	var stats []openflow.GroupStats
	for _, b := range c.multipart(openflow.MultipartRequest{Type: openflow.MultipartGroup, Group: 1}) {
		stats, _ = v13.DecodeGroupStats(b, stats)
	}
	if len(stats) != 1 || stats[0].Packets != 1 || stats[0].RefCount != 1 || len(stats[0].Buckets) != 4 || stats[0].Buckets[1].Packets != 1 {
		t.Errorf("%+v", stats)
	}
}

func TestGroupSelect(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	one, three := watching(1, flow.Output(1)), watching(2, flow.Output(2))
	one.Weight, three.Weight = 1, 3
	through(t, c, flow.Group{Kind: flow.GroupKindSelect, ID: 1, Buckets: []flow.Bucket{one, three}})
	count := func() (n [3]int) {
		for i := range 250 {
			frame := udp(byte(i), 2)
			first := s.Receive(4, frame)
			if again := s.Receive(4, frame); len(first.Frames) != 1 || again.Frames[0].Port != first.Frames[0].Port {
				t.Fatal("packets of one flow take different buckets")
			}
			n[first.Frames[0].Port]++
		}
		return n
	}
	if n := count(); n[1] < 40 || n[1] > 85 {
		t.Errorf("bucket of weight 1 of 4 took %d of 250 flows", n[1])
	}
	s.SetLink(2, false)
	if n := count(); n[1] != 250 {
		t.Errorf("with the other's port down, the bucket took %d of 250", n[1])
	}
}

func TestGroupFastFailover(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.fine(c.group(flow.Add, flow.Group{Kind: flow.GroupKindFastFailover, ID: 7, Buckets: []flow.Bucket{watching(3, flow.Output(3))}}))
	byGroup := bucketOf(flow.ToGroup(7))
	byGroup.WatchGroup = 7
	through(t, c, flow.Group{Kind: flow.GroupKindFastFailover, ID: 1, Buckets: []flow.Bucket{watching(1, flow.Output(1)), watching(2, flow.Output(2)), byGroup}})
	steps := []struct {
		port flow.Port
		up   bool
		want []flow.Port
	}{{4, true, []flow.Port{1}}, {1, false, []flow.Port{2}}, {2, false, []flow.Port{3}}, {3, false, nil}, {2, true, []flow.Port{2}}, {1, true, []flow.Port{1}}}
	for _, st := range steps {
		s.SetLink(st.port, st.up)
		wantPorts(t, s.Receive(4, udp(1, 2)), st.want...)
	}
}

func TestGroupChain(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.fine(c.group(flow.Add, flow.Group{Kind: flow.GroupKindIndirect, ID: 2, Buckets: []flow.Bucket{bucketOf(flow.SetEthSrc(mac(9)), flow.Output(2))}}))
	through(t, c, flow.Group{Kind: flow.GroupKindAll, ID: 1, Buckets: []flow.Bucket{bucketOf(flow.ToGroup(2)), bucketOf(flow.Output(1))}})
	wantPorts(t, s.Receive(4, udp(1, 2)), 2, 1)
	c.wantError(c.group(flow.Modify, flow.Group{Kind: flow.GroupKindAll, ID: 2, Buckets: []flow.Bucket{bucketOf(flow.ToGroup(1))}}),
		openflow.ErrGroupModFailed, openflow.GroupModFailedLoop)
}

// TestGroupDelete: entries that lead to a group go with it, and say why.
func TestGroupDelete(t *testing.T) {
	s := New(Config{MaxGroups: 1})
	c := connect(t, s, v13)
	g := flow.Group{Kind: flow.GroupKindAll, ID: 1}
	c.fine(c.group(flow.Add, g))
	c.wantError(c.group(flow.Add, flow.Group{ID: 2}), openflow.ErrGroupModFailed, openflow.GroupModFailedOutOfGroups)
	c.add(flow.Entry{Flags: flow.FlagSendRem, HasWrite: true, Write: []flow.Action{flow.ToGroup(1)}})
	c.add(flow.Entry{Priority: 1, Match: flow.Match{}.WithInPort(1), Apply: out(2)})
	if r := c.removed(c.group(flow.Delete, g)); len(r) != 1 || r[0].Reason != openflow.RemovedGroupDelete {
		t.Errorf("%+v", r)
	}
	if len(s.Flows()) != 1 || len(s.Groups()) != 0 {
		t.Errorf("left are %d entries, %d groups", len(s.Flows()), len(s.Groups()))
	}
	c.fine(c.group(flow.Delete, g)) // it is gone already
	c.fine(c.group(flow.Add, g))
	c.fine(c.group(flow.Delete, flow.Group{ID: flow.GroupAll}))
	if len(s.Groups()) != 0 {
		t.Error("groups are left after all were deleted")
	}
}

func TestGroupModify(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	through(t, c, flow.Group{Kind: flow.GroupKindIndirect, ID: 1, Buckets: []flow.Bucket{bucketOf(flow.Output(1))}})
	c.fine(c.group(flow.Modify, flow.Group{Kind: flow.GroupKindIndirect, ID: 1, Buckets: []flow.Bucket{bucketOf(flow.Output(2))}}))
	wantPorts(t, s.Receive(4, udp(1, 2)), 2)
	var groups []flow.Group
	for _, b := range c.multipart(openflow.MultipartRequest{Type: openflow.MultipartGroupDesc}) {
		groups, _ = v13.DecodeGroupDesc(b, groups)
	}
	if len(groups) != 1 || groups[0].Buckets[0].Actions[0] != flow.Output(2) {
		t.Errorf("%+v", groups)
	}
}
