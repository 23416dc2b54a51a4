// Package api is the vocabulary between services and towards the outside:
// the .proto contracts, the Go that is generated from them, and the typed
// names of all methods and subjects. It holds no logic.
//
// Anyone may import it; it imports flow, the standard library and the protobuf
// and gRPC runtimes.
package api

import "github.com/weft-sdn/weft/flow"

// Method names a unary call and the types of its request and its response.
type Method[Req, Resp any] struct{ Name string } // service.Method

// MethodName returns the name.
func (m Method[Req, Resp]) MethodName() string { return m.Name }

// NewMessages returns an empty request and an empty response.
func (m Method[Req, Resp]) NewMessages() (req, resp any) { return new(Req), new(Resp) }

// Subject names a kind of event and the type of its message. Events that tell
// the state of something have a Key: the last of each key is retained, and told
// to subscribers that come later.
type Subject[E any] struct {
	Name string // service.Event
	// Key names what the event tells the state of; nil if it tells of a moment.
	Key func(*E) string
	// Gone reports whether the event says that the thing is no more: nothing is
	// retained then. Nil: never.
	Gone func(*E) bool
	// Withdrawn returns what is to be told when the publisher has come back and
	// does not know of the thing any more. Nil: nothing.
	Withdrawn func(last *E) *E
	// Renews is the subject of which this event tells all anew: what is
	// retained there under the key of this one, KEY/..., is out of date.
	Renews string
}

// SubjectName returns the name.
func (s Subject[E]) SubjectName() string { return s.Name }

// NewMessage returns an empty message.
func (s Subject[E]) NewMessage() any { return new(E) }

// KeyOf returns the key of an event, false if its subject has none.
func (s Subject[E]) KeyOf(event any) (key string, retained bool) {
	if s.Key == nil {
		return "", false
	}
	return s.Key(event.(*E)), true
}

// GoneBy reports whether the event says that what it tells of is no more.
func (s Subject[E]) GoneBy(event any) bool { return s.Gone != nil && s.Gone(event.(*E)) }

// Renewed returns the subject of which an event tells all anew, if any.
func (s Subject[E]) Renewed() string { return s.Renews }

// WithdrawnBy returns the event that takes back the last one, nil if none does.
func (s Subject[E]) WithdrawnBy(last any) any {
	if s.Withdrawn == nil {
		return nil
	}
	return s.Withdrawn(last.(*E))
}

// The calls that carry out a decision, which is not a message of the .proto
// files. Both are put to the partitions of the decision's switches.
var (
	// Apply carries out a decision and answers when every switch that it
	// touches has confirmed it, by barrier, or has failed to.
	Apply = Method[flow.Decision, ApplyResult]{"southbound.Apply"}
	// Send carries out a decision and answers when it is in the send queues;
	// fences are still waited for, behind the answer.
	Send = Method[flow.Decision, ApplyResult]{"southbound.Send"}
)

// The events. Each subject has one publisher: the service of its prefix.
var (
	SwitchChangedEvent   = Subject[SwitchChanged]{"southbound.SwitchChanged", switchKey, switchGone, switchWithdrawn, "southbound.PortChanged"}
	PortChangedEvent     = Subject[PortChanged]{Name: "southbound.PortChanged", Key: portKey}
	FlowRemovedEvent     = Subject[FlowRemoved]{Name: "southbound.FlowRemoved"}
	SwitchErrorEvent     = Subject[SwitchError]{Name: "southbound.SwitchError"}
	SwitchForgottenEvent = Subject[SwitchForgotten]{Name: "southbound.SwitchForgotten"}
	LinkChangedEvent     = Subject[LinkChanged]{"discovery.LinkChanged", linkKey, linkGone, linkWithdrawn, ""}
	PortRoleChangedEvent = Subject[PortRoleChanged]{Name: "discovery.PortRoleChanged", Key: roleKey, Gone: roleGone}
	HostChangedEvent     = Subject[HostChanged]{Name: "hosts.HostChanged", Key: hostKey, Gone: hostGone}
	HostClaimedEvent     = Subject[HostClaimed]{Name: "hosts.HostClaimed"}
	PathsConvergedEvent  = Subject[PathsConverged]{Name: "paths.PathsConverged", Key: func(*PathsConverged) string { return "last" }}
	RouteChangedEvent    = Subject[RouteChanged]{Name: "forwarding.RouteChanged"}
	RoutesSharedEvent    = Subject[RoutesShared]{Name: "forwarding.RoutesShared"}
	FlowsObservedEvent   = Subject[FlowsObserved]{Name: "flowrules.FlowsObserved"}
	FlowFailedEvent      = Subject[FlowFailed]{Name: "flowrules.FlowFailed"}
)
