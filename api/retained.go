package api

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// The keys of the events that tell the state of something, what says that it
// is gone, and what is told of it when its publisher has forgotten it.

func switchKey(e *SwitchChanged) string { return e.GetSwitch().GetDpid() }
func switchGone(e *SwitchChanged) bool  { return !e.GetSwitch().GetConnected() }

func switchWithdrawn(last *SwitchChanged) *SwitchChanged {
	sw := proto.CloneOf(last.GetSwitch())
	sw.Connected, sw.Reason = false, "it has not come back to the southbound"
	return &SwitchChanged{Switch: sw}
}

func portKey(e *PortChanged) string {
	return fmt.Sprintf("%s/%d", e.GetPort().GetDpid(), e.GetPort().GetPort())
}

func linkKey(e *LinkChanged) string {
	src, dst := e.GetLink().GetSrc(), e.GetLink().GetDst()
	return fmt.Sprintf("%s/%d-%s/%d", src.GetDpid(), src.GetPort(), dst.GetDpid(), dst.GetPort())
}

func linkGone(e *LinkChanged) bool { return e.GetRemoved() }

func linkWithdrawn(last *LinkChanged) *LinkChanged {
	return &LinkChanged{Link: last.GetLink(), Removed: true, Cause: "silent"}
}

func roleKey(e *PortRoleChanged) string {
	at := e.GetPort().GetAt()
	return fmt.Sprintf("%s/%d", at.GetDpid(), at.GetPort())
}

func hostKey(e *HostChanged) string {
	return fmt.Sprintf("%s/%d", e.GetHost().GetMac(), e.GetHost().GetVlan())
}

func roleGone(e *PortRoleChanged) bool { return e.GetGone() }

func hostGone(e *HostChanged) bool { return e.GetChange() == "gone" }
