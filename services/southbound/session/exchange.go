package session

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/openflow"
)

// Exchange sends one request that is no multipart request and returns the
// switch's answer.
func (s *Session) Exchange(ctx context.Context, request func(xid uint32) ([]byte, error)) ([]byte, error) {
	xid := s.xid.Add(1)
	msg, err := request(xid)
	if err != nil {
		return nil, api.Errorf(codes.Unimplemented, "switch %v: %w", s.DPID, err)
	}
	p, err := s.exchangeMessages(ctx, xid, 1, msg)
	if err != nil {
		return nil, s.Unanswered(err)
	}
	if len(p.bodies) != 1 {
		return nil, api.Errorf(codes.Internal, "switch %v has answered without content", s.DPID)
	}
	return p.bodies[0], nil
}

// Confirm sends one message that has no answer, followed by a barrier, and
// waits for the barrier. The result lists what the switch refused.
func (s *Session) Confirm(ctx context.Context, message func(xid uint32) ([]byte, error)) (*api.ApplyResult, error) {
	last := s.xid.Add(2)
	msg, err := message(last - 1)
	if err != nil {
		return nil, api.Errorf(codes.Unimplemented, "switch %v: %w", s.DPID, err)
	}
	p, err := s.exchangeMessages(ctx, last, 2, s.Version.AppendBarrierRequest(msg, last))
	if err != nil {
		return nil, s.Unanswered(err)
	}
	result := &api.ApplyResult{}
	for _, r := range p.refused {
		result.Failures = append(result.Failures, failure(s.DPID, r.at, &r.err, false))
	}
	return result, nil
}

// exchangeMessages sends n messages, the last with the xid last, and waits for the
// answer to that one.
func (s *Session) exchangeMessages(ctx context.Context, last uint32, n int, msg []byte) (*wait, error) {
	p, err := s.waits.add(last, n)
	if err != nil {
		return nil, err
	}
	if err := s.out.put(msg); err != nil {
		s.waits.forget(p, err)
		return nil, err
	}
	return p, s.await(ctx, p)
}

// Unanswered is the error for a request that failed.
func (s *Session) Unanswered(err error) error {
	if e := (*openflow.Error)(nil); errors.As(err, &e) {
		return api.Errorf(codes.FailedPrecondition, "switch %v refuses: %w", s.DPID, e)
	}
	if api.KindOf(err) != codes.Unknown {
		return err
	}
	return api.Errorf(codes.Unavailable, "switch %v: %w", s.DPID, err)
}

// ModifyPort asks the switch to change a port.
func (s *Session) ModifyPort(ctx context.Context, req *api.ModifyPortRequest) (*api.ApplyResult, error) {
	m, err := s.ports.modification(req)
	if err != nil {
		return nil, err
	}
	return s.Confirm(ctx, func(xid uint32) ([]byte, error) { return s.Version.AppendPortMod(nil, xid, &m) })
}
