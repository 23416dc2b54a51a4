package deploy

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/transport"
)

// call calls a method of a service in another process, for a service of this
// process or (from is nil) for a client outside. It waits for a service that is
// down, and repeats failed requests elsewhere: calls are idempotent. If one that
// changes something is repeated where it was carried out, the answer is that of then.
func (n *Node) call(ctx context.Context, from *local.Service, m weft.Method, req any) (any, error) {
	return n.callIn(ctx, from, m, req, reach{patience: local.CallPatience})
}

// callIn is call for the instances within reach.
func (n *Node) callIn(ctx context.Context, from *local.Service, m weft.Method, req any, within reach) (any, error) {
	name := m.MethodName()
	owner, _, _ := strings.Cut(name, ".")
	wire, caller := name, "somebody outside"
	var data []byte
	if from == nil {
		wire, data = outsideMethod, members.AppendBytes(nil, []byte(name))
	} else {
		caller = from.Spec.Name
	}
	data, err := weft.Encode(data, req)
	if err != nil {
		return nil, api.Errorf(codes.Internal, "encode the request of %s: %w", name, err)
	}
	var number uint64
	if api.RulesOf(name).GetChanges() {
		number = 1 + rand.Uint64N(math.MaxUint64)
	}
	deadline := time.Now().Add(within.patience)
	var last error
	for {
		v := n.members.links.View.Load()
		if within.directed != nil && v.Wiring() != within.directed.Wiring() {
			return nil, errReplanned
		}
		if v.Current != nil && !v.Current.InForce().Has(owner) {
			if n.config.Alone {
				return nil, api.Errorf(codes.Unavailable, "%s calls %s, but service %s does not run", caller, name, owner)
			}
			return nil, api.Errorf(codes.Unavailable, "%s calls %s, but service %s is not in the plan", caller, name, owner)
		}
		t := members.Pick(within.instances(v, owner))
		if t != nil && t.Peer == nil { // it has moved here meanwhile
			if here := n.worker.Running().Methods[name]; here != nil && here.Ready(ctx, from) {
				began := time.Now()
				resp, err := here.Answer(ctx, req)
				n.countCall(from, owner, name, nil, began)
				if err == nil {
					return resp, nil
				}
				if !here.Server.Leaving() {
					return nil, local.ErrorOf(err)
				}
			}
			t = nil
		}
		if t != nil {
			began := time.Now()
			stamp := v.Stamp(t, from)
			stamp.Number = number
			answer, err := t.Peer.Send(ctx, wire, stamp, data)
			if err == nil {
				resp, here, err := readAnswer(m, answer)
				if here {
					n.countCall(from, owner, name, t.Peer, began)
					return resp, err
				}
			} else if last = err; transport.ErrorOf(err).Code != transport.Unavailable {
				return nil, local.FromWire(err)
			}
		}
		if within.present && t == nil {
			return nil, api.Errorf(codes.Unavailable, "%s calls %s, but service %s%s cannot be reached: %v", caller, name, owner, within.where(), why(last))
		}
		if err := v.Pause(ctx, deadline); err != nil {
			if ctx.Err() != nil {
				return nil, local.ErrorOf(ctx.Err())
			}
			return nil, api.Errorf(codes.Unavailable, "%s calls %s, but service %s%s cannot be reached (waited %v): %v", caller, name, owner, within.where(), within.patience, why(last))
		}
	}
}

func why(err error) string {
	if err == nil {
		return "it runs nowhere now; weft get workers shows what does"
	}
	return err.Error()
}

// readAnswer decodes an answer; here is false if the service does not run in
// the process that was asked.
func readAnswer(m weft.Method, answer []byte) (resp any, here bool, err error) {
	if len(answer) == 0 {
		return nil, true, api.Errorf(codes.Internal, "%s: empty answer", m.MethodName())
	}
	switch answer[0] {
	case members.AnswerOK:
		_, resp := m.NewMessages()
		if err := weft.Decode(answer[1:], resp); err != nil {
			return nil, true, api.Errorf(codes.Internal, "decode the response of %s: %w", m.MethodName(), err)
		}
		return resp, true, nil
	case members.AnswerError:
		if len(answer) < 2 {
			return nil, true, api.Errorf(codes.Internal, "%s: malformed answer", m.MethodName())
		}
		return nil, true, &api.Error{Kind: codes.Code(answer[1]), Text: string(answer[2:])}
	}
	return nil, false, nil
}

// Call answers a request of another process (transport.Handler).
func (n *Node) Call(ctx context.Context, name string, req []byte) ([]byte, error) {
	method, stamp, err := members.ReadStamp(name)
	if err != nil {
		return nil, transport.Errorf(transport.Code(codes.InvalidArgument), "%q is no name of a method", name)
	}
	if n.config.Allow != nil && ctx.Value(fromBusKey{}) == nil && !n.config.Allow(transport.Peer(ctx), method) {
		return nil, transport.Errorf(transport.Code(codes.PermissionDenied), "the certificate of the caller does not allow it %s", method)
	}
	if !n.members.links.View.Load().Agrees(stamp) {
		return []byte{members.AnswerNotHere}, nil
	}
	switch method {
	case members.PingMethod:
		return n.apps.sign(), nil
	case members.AskMethod:
		return n.answerAsked(req)
	case metricsMethod:
		return n.encodeMetrics()
	case crossingsMethod:
		return n.encodeCrossings()
	case logMethod:
		return n.encodeLog(req)
	case workMethod:
		return n.encodeWork()
	case scalingMethod:
		return n.scaling.encodeScaling()
	case profileMethod:
		return n.profiled(ctx, req)
	case watchMethod:
		return n.watchers.answerWatch(req)
	case members.EventsMethod:
		return n.receivers.take(stamp, req)
	case members.PacketsMethod:
		return n.packets.Packets(ctx, stamp, req)
	case members.ObserveMethod:
		return n.packets.Observed(ctx, req)
	case outsideMethod:
		r := members.Cursor{B: req}
		if method, req = string(r.Bytes()), r.B; r.Err != nil || apps.Internal(method) {
			return nil, transport.Errorf(transport.Code(codes.PermissionDenied), "%q is not to be called from outside", method)
		}
	}
	return n.repeats.once(ctx, stamp.Repeatable(), func() ([]byte, error) {
		m := n.worker.Running().Methods[method]
		if m == nil || m.Server.Standby.Load() || !stamp.Meant(m.Server) {
			return []byte{members.AnswerNotHere}, nil
		}
		out, here, err := m.Serve(ctx, []byte{members.AnswerOK}, req)
		switch {
		case !here:
			return []byte{members.AnswerNotHere}, nil
		case err != nil:
			return errorAnswer(err), nil
		}
		return out, nil
	})
}

func errorAnswer(err error) []byte {
	return append([]byte{members.AnswerError, byte(api.KindOf(err))}, err.Error()...)
}
