package apps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// Kind is how an app takes part in the pipeline.
type Kind int

// The kinds.
const (
	Stage    Kind = iota // decides on packets, and is waited for
	Observer             // is sent copies
)

// String returns the kind as apps write it.
func (k Kind) String() string { return [...]string{"stage", "observer"}[k] }

// Packet is a packet-in for an app and, once a stage has answered, its
// decision: Verdict, and operations added to Decision. The app does not modify
// In.
type Packet struct {
	In       *flow.PacketIn
	Decision *flow.Decision
	Verdict  flow.Verdict
}

// App is an attached app.
type App interface {
	Name() string
	Kind() Kind
	// Packets passes packets to the app, in order. For a stage it returns with
	// the answer filled in, or an error of kind Unavailable (the app is gone),
	// DeadlineExceeded (it did not answer in time), InvalidArgument (its answer
	// is malformed) or that of ctx; then all packets are unchanged. Several
	// calls may run at once. For an observer it returns at once; packets that
	// do not fit into a slow observer's queue are counted as dropped.
	Packets(ctx context.Context, p []Packet) error
}

// AppInfo describes an app that attaches.
type AppInfo struct {
	Name      string
	Kind      Kind
	Filter    flow.Match // of other packets the app says Next, without being asked; not of hosts that it holds
	Transport string     // grpc, ws or rest
	Peer      string     // where it has attached from, or its url
	App       App
}

// link is how a transport reaches its app.
type link interface {
	// exchange sends packets and returns the app's answer. Its errors are
	// *api.Error.
	exchange(ctx context.Context, p *api.Packets) (*api.Decisions, error)
	// deliver sends packets that need no answer.
	deliver(ctx context.Context, p *api.Packets) error
}

// app is an attached app, over whichever transport.
type app struct {
	info   AppInfo
	config *Config
	limits *Limits
	link   link
	since  time.Time
	ctx    context.Context // ends, with the cause, when the app is detached
	end    context.CancelCauseFunc
	room   chan struct{}      // one token for each batch in flight
	queue  chan *api.PacketIn // to an observer
	ids    atomic.Uint64      // of batches
	missed atomic.Int32       // consecutive timeouts
	used   *allowance         // of its grant; that of the name, also when it attaches again

	packets, answered, timeouts, dropped, skipped, unsent atomic.Uint64
}

func newApp(ctx context.Context, info AppInfo, l link, config *Config) *app {
	limits := &config.Limits
	a := &app{info: info, config: config, limits: limits, link: l, since: time.Now(), room: make(chan struct{}, limits.Batches)}
	a.ctx, a.end = context.WithCancelCause(ctx)
	a.info.App = a
	if info.Kind == Observer {
		a.queue = make(chan *api.PacketIn, limits.Queue)
	}
	return a
}

// Name returns the app's name.
func (a *app) Name() string { return a.info.Name }

// Kind returns the app's kind.
func (a *app) Kind() Kind { return a.info.Kind }

// Packets passes packets to the app.
func (a *app) Packets(ctx context.Context, list []Packet) error {
	if a.info.Kind == Observer {
		a.observe(list)
		return nil
	}
	var asked []int // the packets that match the filter
	var messages []*api.PacketIn
	for i := range list {
		if m := a.message(list[i].In); m != nil {
			asked, messages = append(asked, i), append(messages, m)
		}
	}
	a.skipped.Add(uint64(len(list) - len(asked)))
	// All answers are checked before the first is applied.
	var decisions []*api.Decision
	for from := 0; from < len(messages); from += a.limits.Batch {
		answer, err := a.ask(ctx, messages[from:min(from+a.limits.Batch, len(messages))])
		if err != nil {
			return err
		}
		decisions = append(decisions, answer...)
	}
	scratch := make([]flow.Decision, len(asked))
	verdicts := make([]flow.Verdict, len(asked))
	for n, i := range asked {
		v, err := decisions[n].Append(list[i].In, &scratch[n])
		if err != nil {
			err = a.fail(codes.InvalidArgument, fmt.Errorf("answer to packet %d of %d: %w", n, len(asked), err))
			a.end(err)
			return err
		}
		verdicts[n] = v
	}
	if a.config.Grant != nil {
		grant := a.config.Grant(a.info.Name)
		if err := a.used.decide(a.info.Name, &grant, scratch, time.Now(), func() { a.unsent.Add(1) }); err != nil {
			a.config.refused(a.info.Name, err)
			err = a.fail(api.KindOf(err), err)
			a.end(err)
			return err
		}
	}
	for i := range list {
		list[i].Verdict = flow.Next
	}
	for n, i := range asked {
		list[i].Verdict = verdicts[n]
		move(list[i].Decision, &scratch[n])
	}
	a.answered.Add(uint64(len(asked)))
	return nil
}

// message returns a packet-in for the app, in memory of its own; nil if it does
// not match the filter and belongs to no host that the app holds.
func (a *app) message(in *flow.PacketIn) *api.PacketIn {
	whole := *in
	packet.Headers(&whole)
	if !a.info.Filter.Matches(&whole.Key) && !slices.Contains(in.HeldBy, a.info.Name) {
		return nil
	}
	whole.Data = bytes.Clone(in.Data)
	return api.NewPacketIn(&whole)
}

// ask sends one batch to a stage and waits for its answer.
func (a *app) ask(ctx context.Context, list []*api.PacketIn) ([]*api.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.timeoutOf(a.info.Name))
	defer cancel()
	ended := context.AfterFunc(a.ctx, cancel)
	defer ended()
	select {
	case a.room <- struct{}{}:
		defer func() { <-a.room }()
	case <-ctx.Done():
		return nil, a.failed(ctx, ctx.Err())
	}
	a.packets.Add(uint64(len(list)))
	id := a.ids.Add(1)
	answer, err := a.link.exchange(ctx, &api.Packets{Id: id, Packets: list})
	if err == nil && answer.GetId() != id {
		err = api.Errorf(codes.InvalidArgument, "decisions have id %d: want %d, that of the packets", answer.GetId(), id)
	}
	if n := len(answer.GetDecisions()); err == nil && n != len(list) {
		err = api.Errorf(codes.InvalidArgument, "%d decisions on %d packets: want one for each", n, len(list))
	}
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	a.missed.Store(0)
	return answer.GetDecisions(), nil
}

// failed returns why a batch was not answered, and detaches the app if
// necessary.
func (a *app) failed(ctx context.Context, err error) error {
	switch {
	case a.ctx.Err() != nil:
		return a.fail(codes.Unavailable, fmt.Errorf("it is gone: %w", context.Cause(a.ctx)))
	case errors.Is(ctx.Err(), context.Canceled):
		return a.fail(codes.Canceled, ctx.Err())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.timeouts.Add(1)
		err = a.fail(codes.DeadlineExceeded, fmt.Errorf("it did not answer within %v", a.config.timeoutOf(a.info.Name)))
		if a.missed.Add(1) >= maxTimeouts {
			a.end(fmt.Errorf("%d batches in a row were not answered within %v", maxTimeouts, a.config.timeoutOf(a.info.Name)))
		}
		return err
	}
	err = a.fail(api.KindOf(err), err)
	a.end(err)
	return err
}

func (a *app) fail(kind codes.Code, err error) error {
	return api.Errorf(kind, "app %s: %w", a.info.Name, err)
}

// move appends the operations of one decision to another; both share their
// memory.
func move(to, from *flow.Decision) {
	for _, op := range from.Ops {
		switch op.Kind {
		case flow.OpFlow:
			to.Flow(op.Switch, from.Flows[op.Index])
		case flow.OpGroup:
			to.Group(op.Switch, from.Groups[op.Index])
		case flow.OpPacketOut:
			to.PacketOut(op.Switch, from.Outs[op.Index])
		case flow.OpFence:
			to.Fence()
		}
	}
}

// status returns the state of the app.
func (a *app) status() *api.App {
	return &api.App{
		Name: a.info.Name, Kind: a.info.Kind.String(), Transport: a.info.Transport, Peer: a.info.Peer,
		Since: a.since.UTC().Format(time.RFC3339), Packets: a.packets.Load(), Answered: a.answered.Load(),
		Timeouts: a.timeouts.Load(), Dropped: a.dropped.Load(), Skipped: a.skipped.Load(), Unsent: a.unsent.Load(),
	}
}
