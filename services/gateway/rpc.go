package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/northbound"
)

// apiServices are the services of the .proto files whose methods do not stream.
func apiServices() []*grpc.ServiceDesc {
	by := map[string]*grpc.ServiceDesc{}
	var list []*grpc.ServiceDesc
	for _, m := range api.Methods() {
		service, name, _ := strings.Cut(strings.TrimPrefix(fullName(m.MethodName()), "/"), "/")
		d := by[service]
		if d == nil {
			d = &grpc.ServiceDesc{ServiceName: service}
			by[service], list = d, append(list, d)
		}
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: name})
	}
	return list
}

// calls are the methods by their full names in gRPC: /weft.v1.Service/Method.
type calls struct {
	rpcs    map[string]api.Answer
	timeout time.Duration
	failed  func(codes.Code)
	refused func(refusal)
	audit   *audit
	holds   func(caller) bool // whether a caller still has the rights that it entered with
	now     func() time.Time
	names   *switchNames
}

// fullName returns the name in gRPC of a method, service.Method.
func fullName(method string) string {
	service, name, _ := strings.Cut(method, ".")
	return "/weft.v1." + strings.ToUpper(service[:1]) + service[1:] + "/" + name
}

func newCalls(rpcs []api.Answer, timeout time.Duration, failed func(codes.Code)) *calls {
	c := &calls{
		rpcs: map[string]api.Answer{}, timeout: timeout, failed: failed,
		refused: func(refusal) {}, audit: &audit{}, holds: func(caller) bool { return true }, now: time.Now, names: newSwitchNames(nil),
	}
	for _, r := range rpcs {
		c.rpcs[fullName(r.Method)] = r
	}
	return c
}

// register offers every method of the .proto files to a gRPC server. Methods that
// no client may call return an error that says so.
func (c *calls) register(s *grpc.Server) {
	for _, d := range apiServices() {
		own := grpc.ServiceDesc{ServiceName: d.ServiceName}
		for _, m := range d.Methods {
			full := "/" + d.ServiceName + "/" + m.MethodName
			own.Methods = append(own.Methods, grpc.MethodDesc{
				MethodName: m.MethodName,
				Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
					r, ok := c.rpcs[full]
					if !ok {
						return nil, status.Errorf(codes.Unimplemented, "%s is not offered to clients", full)
					}
					req := r.New()
					in := &sized{ctx: ctx, to: req.(proto.Message)}
					if err := decode(in); err != nil {
						return nil, err
					}
					if in.err != nil {
						return nil, in.err
					}
					return c.do(ctx, r, req)
				},
			})
		}
		s.RegisterService(&own, nil)
	}
}

// do makes one call, if its caller may, and logs changes.
func (c *calls) do(ctx context.Context, r api.Answer, req any) (resp any, err error) {
	who, changes := callerOf(ctx), api.RulesOf(r.Method).GetChanges()
	if changes {
		begun := c.now()
		line := &record{Time: begun.UTC(), Who: who.name, Role: who.role.String(), From: who.from, Method: r.Method, Request: requestText(req)}
		defer func() {
			outcome(line, err, c.now().Sub(begun))
			c.audit.Add(line)
		}()
	}
	if err := who.may(r.Method, needs(r.Method)); err != nil {
		c.refused(refusedRole)
		c.failed(codes.PermissionDenied)
		return nil, err
	}
	if name := api.RulesOf(r.Method).GetCaller(); name != "" {
		m := req.(proto.Message).ProtoReflect()
		m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOfString(who.name))
	}
	if err := c.names.resolve(req.(proto.Message).ProtoReflect()); err != nil {
		c.failed(status.Code(err))
		return nil, status.Error(status.Code(err), northbound.Shortened(status.Convert(err).Message()))
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			resp, err = nil, status.Errorf(codes.Internal, "panic in %s: %v", r.Method, p)
		}
		if err != nil {
			c.failed(status.Code(err))
		}
	}()
	resp, err = r.Call(ctx, req)
	if err == nil && !changes && !c.holds(who) { // it has waited
		err = errEnded
	}
	if err == nil {
		err = room(northbound.Hold(ctx, sizeOf(resp.(proto.Message))+proto.Size(resp.(proto.Message))))
	}
	if err != nil {
		s := status.Convert(kinded(err))
		return nil, status.Error(s.Code(), northbound.Shortened(s.Message()))
	}
	return resp, nil
}

// permit returns an error if a caller may not call a method, by its full name,
// before anything of the request is read. It logs attempted changes. It does not
// refuse a method that is not offered.
func (c *calls) permit(ctx context.Context, method string) error {
	r, ok := c.rpcs[method]
	if !ok {
		return nil
	}
	who, changes := callerOf(ctx), api.RulesOf(r.Method).GetChanges()
	err := who.may(r.Method, needs(r.Method))
	if err == nil {
		return nil
	}
	if changes {
		now := c.now()
		line := &record{Time: now.UTC(), Who: who.name, Role: who.role.String(), From: who.from, Method: r.Method, Request: json.RawMessage(`"not read"`)}
		outcome(line, err, 0)
		c.audit.Add(line)
	}
	c.refused(refusedRole)
	c.failed(codes.PermissionDenied)
	return err
}

// kinded sets the kind of context errors.
func kinded(err error) error {
	if status.Code(err) == codes.Unknown {
		if s := status.FromContextError(err); s.Code() != codes.Unknown {
			return s.Err()
		}
	}
	return err
}

// answer makes a call that comes as JSON, of a method by its full name.
func (c *calls) answer(ctx context.Context, method string, req proto.Message) (proto.Message, error) {
	r, ok := c.rpcs[method]
	if !ok {
		return nil, status.Errorf(codes.Unimplemented, "%s is not offered to clients", method)
	}
	if b := bodyOf(ctx); b != nil && b.err != nil { // refused, and there was nothing to read
		return nil, b.err
	}
	if err := checkQuery(ctx, req); err != nil {
		return nil, err
	}
	resp, err := c.do(ctx, r, req)
	if err != nil {
		return nil, err
	}
	m := resp.(proto.Message)
	if streamed(ctx, m) {
		return nil, errWritten
	}
	return m, nil
}

// missing returns an error if a method that clients may call is not offered, or
// if one that they may not call is.
func (c *calls) missing() error {
	for _, m := range api.Methods() {
		name := m.MethodName()
		_, offered := c.rpcs[fullName(name)]
		if may := api.RulesOf(name).GetRole() != api.Role_ROLE_UNSPECIFIED; may != offered {
			return fmt.Errorf("gateway: %s is offered to clients: %v; by its role in the .proto file: %v", name, offered, may)
		}
	}
	return nil
}
