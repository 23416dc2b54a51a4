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

// Subject names a kind of event and the type of its message. Events that give
// the state of something have a key, EventKey: the last of each key is retained
// and sent to later subscribers.
type Subject[E any] struct {
	Name    string // service.Event
	Clients bool   // clients of the gateway get it
	Renews  string // the subject whose events under the keys KEY/... are out of date after this one
}

// AnySubject is a Subject without its type.
type AnySubject interface {
	SubjectName() string
	NewMessage() any
	KeyOf(event any) (key string, retained bool)
	GoneBy(event any) bool
	WithdrawnBy(last any) any
	Renewed() string
	ForClients() bool
}

// SubjectName returns the name.
func (s Subject[E]) SubjectName() string { return s.Name }

// NewMessage returns an empty message.
func (s Subject[E]) NewMessage() any { return new(E) }

// KeyOf returns the key of an event, false if its subject has none.
func (s Subject[E]) KeyOf(event any) (key string, retained bool) {
	if e, ok := event.(interface{ EventKey() string }); ok {
		return e.EventKey(), true
	}
	return "", false
}

// GoneBy reports whether the event says that its subject is gone: then nothing
// is retained.
func (s Subject[E]) GoneBy(event any) bool {
	e, ok := event.(interface{ EventGone() bool })
	return ok && e.EventGone()
}

// Renewed returns the subject of which an event tells all anew, if any.
func (s Subject[E]) Renewed() string { return s.Renews }

// ForClients reports whether clients of the gateway get the event.
func (s Subject[E]) ForClients() bool { return s.Clients }

// WithdrawnBy returns the event that takes back the last one after the publisher
// has come back without it, nil if none does.
func (s Subject[E]) WithdrawnBy(last any) any {
	if e, ok := last.(interface{ EventWithdrawn() *E }); ok {
		return e.EventWithdrawn()
	}
	return nil
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
