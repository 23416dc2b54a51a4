package api

import (
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"
)

// The keys of the events that give the state of something (EventKey), which
// events say that it is gone (EventGone), and what subscribers get if its
// publisher has come back without it (EventWithdrawn).

func (e *SwitchChanged) EventKey() string { return e.GetSwitch().GetDpid() }
func (e *SwitchChanged) EventGone() bool  { return !e.GetSwitch().GetConnected() }

func (e *SwitchChanged) EventWithdrawn() *SwitchChanged {
	sw := proto.CloneOf(e.GetSwitch())
	sw.Connected, sw.Reason = false, "it has not come back to the southbound"
	return &SwitchChanged{Switch: sw}
}

func (e *PortChanged) EventKey() string { return portKey(e.GetPort()) }

func (e *LinkChanged) EventKey() string {
	return portKey(e.GetLink().GetSrc()) + "-" + portKey(e.GetLink().GetDst())
}

func (e *LinkChanged) EventGone() bool { return e.GetRemoved() }

func (e *LinkChanged) EventWithdrawn() *LinkChanged {
	return &LinkChanged{Link: e.GetLink(), Removed: true, Cause: "silent"}
}

func (e *PortRoleChanged) EventKey() string { return portKey(e.GetPort().GetAt()) }
func (e *PortRoleChanged) EventGone() bool  { return e.GetGone() }

func (e *RolesSettled) EventKey() string { return e.GetDpid() }
func (e *RolesSettled) EventGone() bool  { return e.GetGone() }

func (e *HostChanged) EventKey() string {
	return fmt.Sprintf("%s/%d", e.GetHost().GetMac(), e.GetHost().GetVlan())
}

func (e *HostChanged) EventGone() bool { return e.GetChange() == "gone" }

func (*HostsSettled) EventKey() string { return "last" }

func (*PathsConverged) EventKey() string { return "last" }

func (e *FloodChanged) EventKey() string { return portKey(e.GetLimit()) }
func (e *FloodChanged) EventGone() bool  { return e.GetEnded() }

func (e *HeartbeatChanged) EventKey() string { return e.GetDpid() }
func (e *HeartbeatChanged) EventGone() bool  { return e.GetState() == "away" }

func (e *BeatChanged) EventKey() string { return e.GetDpid() }
func (e *BeatChanged) EventGone() bool  { return e.GetState() == "away" }

func (e *BeatChanged) EventWithdrawn() *BeatChanged {
	return &BeatChanged{Dpid: e.GetDpid(), State: "away", Reason: "it has not come back to the southbound"}
}

func (e *SegmentChanged) EventKey() string {
	return strconv.FormatUint(uint64(e.GetSegment().GetVlan()), 10)
}

func (e *SegmentChanged) EventGone() bool { return e.GetRemoved() }

func (e *SegmentChanged) EventWithdrawn() *SegmentChanged {
	return &SegmentChanged{Segment: e.GetSegment(), Removed: true}
}

func (e *ChainPortChanged) EventKey() string { return portKey(e.GetAt()) }
func (e *ChainPortChanged) EventGone() bool  { return e.GetGone() }

func (e *ChainPortChanged) EventWithdrawn() *ChainPortChanged {
	return &ChainPortChanged{At: e.GetAt(), Gone: true}
}

func (e *CircuitPortChanged) EventKey() string {
	return fmt.Sprintf("%s/%d", portKey(e.GetAt()), e.GetVlan())
}

func (e *CircuitPortChanged) EventGone() bool { return e.GetGone() }

func (e *CircuitPortChanged) EventWithdrawn() *CircuitPortChanged {
	return &CircuitPortChanged{At: e.GetAt(), Vlan: e.GetVlan(), Gone: true}
}

func portKey(at interface {
	GetDpid() string
	GetPort() uint32
}) string {
	return fmt.Sprintf("%s/%d", at.GetDpid(), at.GetPort())
}

func (e *NodeChanged) EventKey() string { return e.GetNode().GetReport().GetDpid() }
func (e *NodeChanged) EventGone() bool  { return e.GetGone() }

func (e *NodeChanged) EventWithdrawn() *NodeChanged {
	return &NodeChanged{Node: e.GetNode(), Gone: true}
}

func (e *TunnelPortChanged) EventKey() string {
	return e.GetPort().GetKind() + "-" + portKey(e.GetPort().GetA()) + "-" + portKey(e.GetPort().GetB())
}

func (e *TunnelPortChanged) EventGone() bool { return e.GetGone() }

func (e *TunnelChanged) EventKey() string { return e.GetTunnel().GetName() }
func (e *TunnelChanged) EventGone() bool  { return e.GetDeleted() }
