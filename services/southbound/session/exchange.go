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
func (x *exchanges) Exchange(ctx context.Context, request func(xid uint32) ([]byte, error)) ([]byte, error) {
	xid := x.xid.Add(1)
	msg, err := request(xid)
	if err != nil {
		return nil, api.Errorf(codes.Unimplemented, "switch %v: %w", x.DPID, err)
	}
	p, err := x.exchangeMessages(ctx, xid, 1, msg)
	if err != nil {
		return nil, x.Unanswered(err)
	}
	if len(p.bodies) != 1 {
		return nil, api.Errorf(codes.Internal, "switch %v has answered without content", x.DPID)
	}
	return p.bodies[0], nil
}

// Confirm sends one message that has no answer, followed by a barrier, and
// waits for the barrier. The result lists what the switch refused.
func (x *exchanges) Confirm(ctx context.Context, message func(xid uint32) ([]byte, error)) (*api.ApplyResult, error) {
	last := x.xid.Add(2)
	msg, err := message(last - 1)
	if err != nil {
		return nil, api.Errorf(codes.Unimplemented, "switch %v: %w", x.DPID, err)
	}
	p, err := x.exchangeMessages(ctx, last, 2, x.Version.AppendBarrierRequest(msg, last))
	if err != nil {
		return nil, x.Unanswered(err)
	}
	result := &api.ApplyResult{}
	for _, r := range p.refused {
		result.Failures = append(result.Failures, failure(x.DPID, r.at, &r.err, false))
	}
	return result, nil
}

// exchangeMessages sends n messages, the last with the xid last, and waits for the
// answer to that one.
func (x *exchanges) exchangeMessages(ctx context.Context, last uint32, n int, msg []byte) (*wait, error) {
	p, err := x.waits.add(last, n)
	if err != nil {
		return nil, err
	}
	if err := x.out.put(msg); err != nil {
		x.waits.forget(p, err)
		return nil, err
	}
	return p, x.await(ctx, p)
}

// Unanswered is the error for a request that failed.
func (x *exchanges) Unanswered(err error) error {
	if e := (*openflow.Error)(nil); errors.As(err, &e) {
		return api.Errorf(codes.FailedPrecondition, "switch %v refuses: %w", x.DPID, e)
	}
	if api.KindOf(err) != codes.Unknown {
		return err
	}
	return api.Errorf(codes.Unavailable, "switch %v: %w", x.DPID, err)
}

// ModifyPort asks the switch to change a port.
func (s *Session) ModifyPort(ctx context.Context, req *api.ModifyPortRequest) (*api.ApplyResult, error) {
	m, err := s.ports.modification(req)
	if err != nil {
		return nil, err
	}
	return s.Confirm(ctx, func(xid uint32) ([]byte, error) { return s.Version.AppendPortMod(nil, xid, &m) })
}

// CurrentRole asks for the role without changing it (OpenFlow 1.3.5 §7.3.9), of
// a session that is established.
func (x *exchanges) CurrentRole(ctx context.Context) (openflow.Role, uint64, error) {
	msg, err := x.Exchange(ctx, func(xid uint32) ([]byte, error) {
		return x.Version.AppendRoleRequest(nil, xid, openflow.RoleNoChange, 0)
	})
	if err != nil {
		return 0, 0, err
	}
	role, generation, err := x.Version.DecodeRoleReply(msg)
	if err != nil {
		return 0, 0, x.Garbled(err)
	}
	return role, generation, nil
}
