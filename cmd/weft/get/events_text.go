package get

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// EventMessage returns an empty message of the kind of a subject, nil if it is
// not known.
func EventMessage(subject string) proto.Message {
	switch subject {
	case api.SwitchChangedEvent.Name:
		return &api.SwitchChanged{}
	case api.PortChangedEvent.Name:
		return &api.PortChanged{}
	case api.FlowRemovedEvent.Name:
		return &api.FlowRemoved{}
	case api.SwitchErrorEvent.Name:
		return &api.SwitchError{}
	case api.SwitchForgottenEvent.Name:
		return &api.SwitchForgotten{}
	case api.LinkChangedEvent.Name:
		return &api.LinkChanged{}
	case api.PortRoleChangedEvent.Name:
		return &api.PortRoleChanged{}
	case api.HostChangedEvent.Name:
		return &api.HostChanged{}
	case api.HostClaimedEvent.Name:
		return &api.HostClaimed{}
	case api.PathsConvergedEvent.Name:
		return &api.PathsConverged{}
	case api.RouteChangedEvent.Name:
		return &api.RouteChanged{}
	case api.FlowsObservedEvent.Name:
		return &api.FlowsObserved{}
	case api.SegmentChangedEvent.Name:
		return &api.SegmentChanged{}
	case api.FlowFailedEvent.Name:
		return &api.FlowFailed{}
	case api.FloodChangedEvent.Name:
		return &api.FloodChanged{}
	case api.HeartbeatChangedEvent.Name:
		return &api.HeartbeatChanged{}
	case api.ScalingDecidedEvent.Name:
		return &api.ScalingDecided{}
	}
	return nil
}

// Sentence writes an event for people; one that is not known, as it came.
func Sentence(subject string, body []byte) string {
	m := EventMessage(subject)
	if m == nil || (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, m) != nil {
		return string(body)
	}
	switch e := m.(type) {
	case *api.SwitchChanged:
		s := e.Switch
		if !s.GetConnected() {
			return fmt.Sprintf("switch %s is gone%s", s.GetDpid(), because(s.GetReason()))
		}
		return fmt.Sprintf("switch %s has connected from %s, OpenFlow %s, %d ports", s.Dpid, s.Address, s.Openflow, len(e.Ports))
	case *api.PortChanged:
		p, state := e.Port, "down"
		switch {
		case e.Removed:
			state = "removed"
		case p.GetUp():
			state = "up"
		}
		return fmt.Sprintf("port %s/%s (%s) is %s", p.GetDpid(), cli.Port(p.GetPort()), p.GetName(), state)
	case *api.FlowRemoved:
		f := e.Flow
		return fmt.Sprintf("switch %s has removed an entry of %s (%s): priority %d, %s, after %s and %d packets",
			f.GetDpid(), f.GetOwner(), e.Reason, f.GetPriority(), cli.MatchText(f.GetMatch()), cli.Seconds(f.GetDuration()), f.GetPackets())
	case *api.SwitchError:
		what := "a message"
		if e.Port != 0 {
			what = "a packet for port " + cli.Port(e.Port)
		}
		if e.More > 0 {
			what += fmt.Sprintf(", and %d like it before", e.More)
		}
		return fmt.Sprintf("switch %s has refused %s: %s%s", e.Dpid, what, e.Text, because(strings.TrimSuffix("cookie "+e.Cookie, "cookie ")))
	case *api.LinkChanged:
		state := e.Link.GetState()
		if e.Removed {
			state = "gone"
		}
		cause := e.Cause
		if e.Link.GetReason() != "" && !e.Removed {
			cause = e.Link.GetReason()
		}
		return fmt.Sprintf("link %s > %s is %s%s", cli.Place(e.Link.GetSrc()), cli.Place(e.Link.GetDst()), state, because(cause))
	case *api.PortRoleChanged:
		return fmt.Sprintf("port %s is now: %s", cli.Place(e.Port.GetAt()), e.Port.GetRole())
	case *api.HostChanged:
		h := e.Host
		text := fmt.Sprintf("host %s %s at %s", h.GetMac(), e.Change, cli.Place(h.GetAt()))
		if e.From != nil {
			text += ", before at " + cli.Place(e.From)
		}
		if ips := append(append([]string{}, h.GetIpv4()...), h.GetIpv6()...); len(ips) > 0 {
			text += ", " + strings.Join(ips, " ")
		}
		return text
	case *api.HostClaimed:
		return claimSentence(e)
	case *api.PathsConverged:
		text := fmt.Sprintf("topology %d: %d links lost, %d gained; paths in %s ms", e.Version, len(e.Lost), len(e.Gained), cli.Millis(max(e.TookUs, 1)))
		if e.TreeChanged {
			text += "; another broadcast tree"
		}
		return text
	case *api.RouteChanged:
		text := fmt.Sprintf("route %s > %s %s%s", e.Route.GetSrc(), e.Route.GetDst(), e.Change, because(e.Reason))
		if e.TookUs > 0 {
			text += fmt.Sprintf(" in %s ms", cli.Millis(e.TookUs))
		}
		return text + "; " + cli.Hops(e.Route.GetHops())
	case *api.FlowsObserved:
		return fmt.Sprintf("switch %s has %d entries of %s", e.Dpid, len(e.Flows), e.Owner)
	case *api.SegmentChanged:
		g := e.Segment
		if e.Removed {
			return fmt.Sprintf("virtual network %s/%s (VLAN %d) is gone", g.GetTenant(), g.GetNetwork(), g.GetVlan())
		}
		return fmt.Sprintf("virtual network %s/%s (VLAN %d) is reached by %d ports", g.GetTenant(), g.GetNetwork(), g.GetVlan(), len(g.GetPorts()))
	case *api.FloodChanged:
		return floodSentence(e)
	case *api.ScalingDecided:
		return scalingSentence(e.GetDecision())
	case *api.HeartbeatChanged:
		return heartbeatSentence(e)
	case *api.FlowFailed:
		f := e.Flow.GetFlow()
		return fmt.Sprintf("switch %s has not taken an entry of %s: priority %d, %s%s", f.GetDpid(), f.GetOwner(), f.GetPriority(),
			cli.MatchText(f.GetMatch()), because(e.Flow.GetReason()))
	}
	return string(body)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// claimSentence writes an event about a claim for people.
func claimSentence(e *api.HostClaimed) string {
	what := "the place of host " + e.Mac
	if e.Ip != "" {
		what = "address " + e.Ip + " of host " + e.Mac
	}
	if e.Holder != nil {
		what += " at " + cli.Place(e.Holder)
	}
	end := map[string]string{
		"quarantined": "the host does not answer, so the claimant is in quarantine",
		"refused":     "the host was heard, so the claimant is refused",
		"taken":       "the host was not heard, so the claimant has it",
		"returned":    "the host is back and has it again",
		"bound":       "it is bound, so the packet was dropped",
	}[e.Outcome]
	return fmt.Sprintf("%s at %s claims %s: %s", e.Claimant, cli.Place(e.At), what, end)
}
