package local

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/inproc"
)

// wire carries the calls and events of a worker encoded: each service listens
// under its name and dials the others.
type wire struct {
	network   *inproc.Network
	listeners []transport.Listener

	mu    sync.Mutex // guards conns
	conns map[[2]string]transport.Conn
}

func newWire(services []*Service) (*wire, error) {
	w := &wire{network: inproc.New(), conns: map[[2]string]transport.Conn{}}
	for _, s := range services {
		l, err := w.network.Listen(s.Spec.Name, endpoint{s})
		if err != nil {
			return nil, err
		}
		w.listeners = append(w.listeners, l)
	}
	return w, nil
}

func (w *wire) close() {
	for _, l := range w.listeners {
		_ = l.Close() // of inproc: never fails
	}
}

func (w *wire) conn(ctx context.Context, from, to string) (transport.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.conns[[2]string{from, to}]; c != nil {
		return c, nil
	}
	c, err := w.network.Dial(ctx, to)
	if err == nil {
		w.conns[[2]string{from, to}] = c
	}
	return c, err
}

// callEncoded makes a call over the wire.
func (s *Service) callEncoded(ctx context.Context, to *method, req any) (any, error) {
	data, err := weft.Encode(nil, req)
	if err != nil {
		return nil, api.Errorf(codes.Internal, "encode the request of %s: %w", to.name, err)
	}
	c, err := s.worker.wire.conn(ctx, s.Spec.Name, to.Server.Spec.Name)
	if err != nil {
		return nil, FromWire(err)
	}
	counted := s.sent.calls[to.name]
	began := counted.begin()
	data, err = c.Call(ctx, to.name, data)
	counted.end(began)
	if err != nil {
		return nil, FromWire(err)
	}
	_, resp := to.decl.NewMessages()
	if err := weft.Decode(data, resp); err != nil {
		return nil, api.Errorf(codes.Internal, "decode the response of %s: %w", to.name, err)
	}
	return resp, nil
}

// publishEncoded sends an event over the wire to a subscriber.
func (s *Service) publishEncoded(at *subscription, event any) {
	to := at.subject
	data, err := weft.Encode(nil, event)
	if err != nil {
		panic(fmt.Sprintf("encode an event of %s: %v", to.Name, err))
	}
	at.Service.inbox.announce()
	c, err := s.worker.wire.conn(s.Context, s.Spec.Name, at.Service.Spec.Name)
	if err == nil {
		_, err = c.Call(context.WithoutCancel(s.Context), eventMethod+to.Name, data)
	}
	if err != nil {
		at.Service.inbox.retract()
		s.Log.Debug("event not delivered: the worker is stopping", "subject", to.Name, "to", at.Service.Spec.Name, "err", err)
	}
}

// eventMethod, followed by the name of a subject, is the method that carries
// its events to a service.
const eventMethod = "event "

// endpoint is a service as its peers reach it over the wire.
type endpoint struct{ s *Service }

// Call decodes a request and answers it, or takes an event.
func (r endpoint) Call(ctx context.Context, name string, data []byte) ([]byte, error) {
	if subject, isEvent := strings.CutPrefix(name, eventMethod); isEvent {
		r.take(subject, data)
		return nil, nil
	}
	m := r.s.worker.tables.Load().Methods[name]
	if m == nil || m.Server != r.s {
		return nil, toWire(api.Errorf(codes.Unimplemented, "%s does not serve %s", r.s.Spec.Name, name))
	}
	resp, err := m.answerEncoded(ctx, nil, data)
	if err != nil {
		return nil, toWire(err)
	}
	return resp, nil
}

// take decodes an event and queues it.
func (r endpoint) take(name string, data []byte) {
	subject := r.s.worker.tables.Load().Subjects[name]
	event := subject.Decl.NewMessage()
	if err := weft.Decode(data, event); err != nil {
		r.s.inbox.retract()
		r.s.Log.Error("event dropped: it cannot be decoded", "subject", name, "err", err)
		return
	}
	subject.subscriptionOf(r.s).takeEncoded(event)
}

func toWire(err error) error {
	return &transport.Error{Code: transport.Code(api.KindOf(err)), Text: err.Error()}
}

func FromWire(err error) error {
	e := transport.ErrorOf(err)
	return &api.Error{Kind: codes.Code(e.Code), Text: e.Text}
}

// encodedStage runs a stage on encoded and decoded copies of packet-in and
// decision, and returns the stage's additions the same way. It overwrites the
// copies afterwards: a stage that keeps them reads nonsense.
func (s *Service) encodedStage(stage weft.StageFunc) weft.StageFunc {
	cross := func(what string, src, dst any, buf []byte) []byte {
		buf, err := weft.Encode(buf[:0], src)
		if err == nil {
			err = weft.Decode(buf, dst)
		}
		if err != nil {
			panic(fmt.Sprintf("carry the %s to the stage of %s: %v", what, s.Spec.Name, err))
		}
		return buf
	}
	var packet, decision []byte
	return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
		theirIn, theirs := &flow.PacketIn{}, &flow.Decision{}
		packet = cross("packet-in", in, theirIn, packet)
		decision = cross("decision", d, theirs, decision)
		v := stage(theirIn, theirs)
		packet = cross("packet-in", theirIn, in, packet)
		decision = cross("decision", theirs, d, decision)
		clear(theirIn.Data)
		*theirIn, *theirs = flow.PacketIn{}, flow.Decision{}
		return v
	}
}
