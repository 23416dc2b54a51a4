package local

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Cluster connects the services of a worker with those of other processes.
type Cluster interface {
	// Now returns the time of day by the clock that all processes share.
	Now() time.Time
	// Specs returns the declarations of all services of the system.
	Specs() []weft.Spec
	// Directed reports whether calls of a method go to partitions of the
	// network; Direct makes such a call.
	Directed(m weft.Method) bool
	Direct(ctx context.Context, from *Service, m weft.Method, req any) (any, error)
	// Call makes a call that no service of this process answers now.
	Call(ctx context.Context, from *Service, m weft.Method, req any) (any, error)
	// Stray reports whether a subscriber here should ignore a retained event of
	// a publisher here.
	Stray(to, from *Service, sub *Subject, key string, event any) bool
	// Note records a retained event of a publisher here. The subject is locked.
	Note(from *Service, sub *Subject, key string, event any)
	// Open opens the way through other processes for a session of a switch.
	Open(owner *Service, sw flow.DPID, later weft.Later) Crossing
	// StandbyPeers returns the other instances of the service's worker; AskPeer sends the
	// service in one of them a question.
	StandbyPeers(s *Service) []string
	AskPeer(ctx context.Context, s *Service, instance string, question []byte) ([]byte, error)
}

// Crossing carries the packets of one session through the stages in other
// processes.
type Crossing interface {
	// Route sets the stages ahead of the packets that Send takes; none if all
	// stages are here. It reports whether there are observers.
	Route(rest []string) (observed bool)
	// Observe copies a packet to the observers.
	Observe(in *flow.PacketIn)
	// Send takes a packet and the decision so far.
	Send(in *flow.PacketIn, d *flow.Decision) flow.Verdict
	// Flush sends the packets taken so far.
	Flush()
	// Apply applies the part of a decision that is for switches of other
	// partitions, and removes it from d.
	Apply(d *flow.Decision)
	// Away returns how many packets are on their way, and Returned how many have
	// come back, and how many of these were probes.
	Away() int64
	Returned() (all, probes uint64)
	// Close ends the session.
	Close()
}

// alone is the Cluster of the only process.
type alone struct{ specs []weft.Spec }

func (alone) Now() time.Time                                        { return time.Now() }
func (a alone) Specs() []weft.Spec                                  { return slices.Clone(a.specs) }
func (alone) Directed(weft.Method) bool                             { return false }
func (alone) StandbyPeers(*Service) []string                        { return nil }
func (alone) Stray(_, _ *Service, _ *Subject, _ string, _ any) bool { return false }
func (alone) Note(*Service, *Subject, string, any)                  {}

func (a alone) Direct(ctx context.Context, from *Service, m weft.Method, req any) (any, error) {
	return a.Call(ctx, from, m, req)
}

func (alone) Call(_ context.Context, from *Service, m weft.Method, _ any) (any, error) {
	owner, _, _ := strings.Cut(m.MethodName(), ".")
	return nil, api.Errorf(codes.Unavailable, "%s calls %s, but service %s does not run", from.Spec.Name, m.MethodName(), owner)
}

func (alone) AskPeer(_ context.Context, _ *Service, instance string, _ []byte) ([]byte, error) {
	return nil, api.Errorf(codes.Unavailable, "instance %s does not run", instance)
}

func (alone) Open(*Service, flow.DPID, weft.Later) Crossing { return alone{} }

// Of a session of the only process, no packet crosses.
func (alone) Route([]string) bool                              { return false }
func (alone) Observe(*flow.PacketIn)                           {}
func (alone) Send(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Drop }
func (alone) Flush()                                           {}
func (alone) Apply(*flow.Decision)                             {}
func (alone) Away() int64                                      { return 0 }
func (alone) Returned() (all, probes uint64)                   { return 0, 0 }
func (alone) Close()                                           {}
