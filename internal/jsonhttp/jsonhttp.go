// Package jsonhttp answers methods of the .proto files as JSON over HTTP, with a mux of
// grpc-gateway. It reads the routes of the methods when they are registered
// (api.HTTPRoute); no code is generated for them.
package jsonhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/weft-sdn/weft/api"
)

// Caller makes a call of a method that a request over HTTP asks for.
type Caller func(context.Context, proto.Message) (proto.Message, error)

// Register has mux answer a method by call, at each of its paths. Later methods come
// before earlier ones where both match. The errors are those of the method's options.
func Register(mux *runtime.ServeMux, m protoreflect.MethodDescriptor, call Caller) error {
	request, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
	if err != nil {
		return fmt.Errorf("%s: %w", m.FullName(), err)
	}
	for _, is := range api.RulesOf(api.MethodName(m)).Routes() {
		r, err := newRoute(m, is)
		if err == nil {
			r.request, r.call = request, call
			err = mux.HandlePath(is.Verb, is.Path, r.answer(mux))
		}
		if err != nil {
			return fmt.Errorf("%s: http: %s %s: %w", m.FullName(), is.Verb, is.Path, err)
		}
	}
	return nil
}

// RegisterServer has mux answer the methods of a service by a server of it, which is
// of the service's generated interface. Methods that stream are left out.
func RegisterServer(mux *runtime.ServeMux, service *grpc.ServiceDesc, server any) error {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service.ServiceName))
	if err != nil {
		return fmt.Errorf("%s: %w", service.ServiceName, err)
	}
	for _, m := range service.Methods {
		method := d.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(m.MethodName))
		err := Register(mux, method, func(ctx context.Context, req proto.Message) (proto.Message, error) {
			resp, err := m.Handler(server, ctx, func(in any) error { proto.Merge(in.(proto.Message), req); return nil }, nil)
			if err != nil {
				return nil, err
			}
			return resp.(proto.Message), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// route is one route of a method.
type route struct {
	path    string
	full    string // the method's name in gRPC: /package.Service/Method
	request protoreflect.MessageType
	call    Caller
	whole   bool                         // the body is the request
	body    protoreflect.FieldDescriptor // or this field of it; nil: neither
	given   *utilities.DoubleArray       // fields that the path or the body give, which a query may not
}

// inPath matches a field of the request in a path.
var inPath = regexp.MustCompile(`\{([^}=]+)[^}]*\}`)

func newRoute(m protoreflect.MethodDescriptor, is api.HTTPRoute) (*route, error) {
	r := &route{path: is.Path, full: "/" + string(m.Parent().FullName()) + "/" + string(m.Name()), whole: is.Body == "*"}
	var given [][]string
	if is.Body != "" && !r.whole {
		r.body = m.Input().Fields().ByName(protoreflect.Name(is.Body))
		if r.body == nil || r.body.Message() == nil || r.body.IsList() || r.body.IsMap() {
			return nil, fmt.Errorf("%s has no message %s", m.Input().Name(), is.Body)
		}
		given = append(given, []string{is.Body})
	}
	for _, f := range inPath.FindAllStringSubmatch(r.path, -1) {
		given = append(given, strings.Split(f[1], "."))
	}
	r.given = utilities.NewDoubleArray(given)
	return r, nil
}

// answer returns the handler of the route's requests.
func (r *route) answer(mux *runtime.ServeMux) runtime.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request, fields map[string]string) {
		in, out := runtime.MarshalerForRequest(mux, req)
		ctx, err := runtime.AnnotateContext(req.Context(), mux, req, r.full, runtime.WithHTTPPathPattern(r.path))
		if err != nil {
			runtime.HTTPError(req.Context(), mux, out, w, req, err)
			return
		}
		asked, err := r.read(in, req, fields)
		var answer proto.Message
		if err == nil {
			answer, err = r.call(ctx, asked)
		}
		if err != nil {
			runtime.HTTPError(ctx, mux, out, w, req, err)
			return
		}
		runtime.ForwardResponseMessage(ctx, mux, out, w, req, answer, mux.GetForwardResponseOptions()...)
	}
}

// read reads the request of a call from the body, the fields of the path and the
// query. Its errors are for the client: InvalidArgument.
func (r *route) read(in runtime.Marshaler, req *http.Request, fields map[string]string) (proto.Message, error) {
	asked := r.request.New()
	if r.whole || r.body != nil {
		part := asked
		if r.body != nil {
			part = asked.NewField(r.body).Message()
		}
		switch err := in.NewDecoder(req.Body).Decode(part.Interface()); {
		case errors.Is(err, io.EOF): // there is none
		case err != nil:
			return nil, status.Error(codes.InvalidArgument, err.Error())
		case r.body != nil:
			asked.Set(r.body, protoreflect.ValueOfMessage(part))
		}
	}
	for name, value := range fields {
		if err := runtime.PopulateFieldFromPath(asked.Interface(), name, value); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "%s: %q is not allowed: %v", name, value, err)
		}
	}
	if !r.whole {
		if err := req.ParseForm(); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		if err := runtime.PopulateQueryParameters(asked.Interface(), req.Form, r.given); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
	}
	_, _ = io.Copy(io.Discard, req.Body) // so that the connection can be used again
	return asked.Interface(), nil
}
