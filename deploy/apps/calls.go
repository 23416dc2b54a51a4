package apps

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/weft-sdn/weft/api"
)

// Internal reports whether a method is closed to apps: it is for services only,
// or for administrators, who call it with a token through the northbound.
func Internal(method string) bool {
	role := api.RulesOf(method).GetRole()
	return role == api.Role_ROLE_UNSPECIFIED || role == api.Role_ROLE_ADMIN
}

// calls makes the calls of clients.
type calls struct {
	caller  Caller
	timeout time.Duration
	room    chan struct{} // one token for each call in progress
	changed func(Change)  // nil: nobody wants to know
	grant   func(name string) Grant
	refused func(app string, err error) // nil: nobody wants to know
}

// methods returns the names of what clients may call.
func (c *calls) methods() []string {
	list := slices.DeleteFunc(slices.Clone(c.caller.Methods()), Internal)
	slices.Sort(list)
	return list
}

// request returns an empty request of a method open to clients.
func (c *calls) request(method string) (proto.Message, error) {
	if !Internal(method) {
		if newReq, ok := c.caller.Method(method); ok {
			return newReq(), nil
		}
	}
	return nil, api.Errorf(codes.Unimplemented, "method %.80q is not offered; there are: %s", method, listed(c.methods()))
}

// do makes one call. Its errors are *api.Error.
func (c *calls) do(ctx context.Context, method string, req proto.Message) (resp proto.Message, err error) {
	begun := time.Now()
	defer func() { c.tell(ctx, method, req, begun, err) }()
	if err := c.permit(visitorOf(ctx), method, req); err != nil {
		if c.refused != nil {
			c.refused(visitorOf(ctx).app, err)
		}
		return nil, kinded(err)
	}
	select {
	case c.room <- struct{}{}:
		defer func() { <-c.room }()
	default:
		return nil, api.Errorf(codes.ResourceExhausted, "%d calls are under way: try again later", cap(c.room))
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			resp, err = nil, api.Errorf(codes.Internal, "panic in %s: %v", method, p)
		}
	}()
	resp, err = c.caller.Call(ctx, method, req)
	if err != nil {
		return nil, kinded(err)
	}
	return resp, nil
}

// kinded returns an error with its kind, even if it is a context's error.
func kinded(err error) *api.Error {
	kind := api.KindOf(err)
	if kind == codes.Unknown {
		kind = status.FromContextError(err).Code()
	}
	return api.Errorf(kind, "%s", textOf(err))
}

// textOf returns an error's text without gRPC's wrapping.
func textOf(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// offered returns a gRPC service for each service of the .proto files, even if
// it is not running: each method asks the Caller.
func (o *Server) offered() []*grpc.ServiceDesc {
	var list []*grpc.ServiceDesc
	own := api.File_apps_proto.Package()
	protoregistry.GlobalFiles.RangeFilesByPackage(own, func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			if api.OnMachine(s) {
				continue
			}
			d := &grpc.ServiceDesc{ServiceName: string(s.FullName()), Metadata: f.Path()}
			for k := range s.Methods().Len() {
				if m := s.Methods().Get(k); !m.IsStreamingClient() && !m.IsStreamingServer() {
					d.Methods = append(d.Methods, o.unary(m))
				}
			}
			if len(d.Methods) > 0 {
				list = append(list, d)
			}
		}
		return true
	})
	return list
}

// appIn returns the app that a request of gRPC names in its metadata.
func appIn(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if names := md.Get(appHeader); len(names) > 0 {
		return names[0]
	}
	return ""
}

// unary offers one method over gRPC.
func (o *Server) unary(m protoreflect.MethodDescriptor) grpc.MethodDesc {
	service, method := m.Parent().Name(), m.Name()
	name := strings.ToLower(string(service[:1])) + string(service[1:]) + "." + string(method)
	full := "/" + string(m.Parent().FullName()) + "/" + string(method)
	do := func(ctx context.Context, req any) (any, error) {
		if err := o.known(ctx); err != nil {
			return nil, err
		}
		ctx, err := o.visited(ctx, ctx, peerOf(ctx), appIn(ctx))
		if err != nil {
			return nil, err
		}
		return o.calls.do(ctx, name, req.(proto.Message))
	}
	return grpc.MethodDesc{
		MethodName: string(method),
		Handler: func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			req, err := o.calls.request(name)
			if err != nil {
				return nil, err
			}
			if err := decode(req); err != nil {
				return nil, err
			}
			if intercept == nil {
				return do(ctx, req)
			}
			return intercept(ctx, req, &grpc.UnaryServerInfo{Server: o, FullMethod: full}, do)
		},
	}
}
