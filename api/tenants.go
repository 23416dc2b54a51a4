package api

import "strconv"

// SegmentChangedEvent tells the ports of each virtual network, by the VLAN that
// carries it inside the network. It is retained.
var SegmentChangedEvent = Subject[SegmentChanged]{"tenants.SegmentChanged", segmentKey, segmentGone, segmentWithdrawn, ""}

func segmentKey(e *SegmentChanged) string {
	return strconv.FormatUint(uint64(e.GetSegment().GetVlan()), 10)
}

func segmentGone(e *SegmentChanged) bool { return e.GetRemoved() }

func segmentWithdrawn(last *SegmentChanged) *SegmentChanged {
	return &SegmentChanged{Segment: last.GetSegment(), Removed: true}
}
