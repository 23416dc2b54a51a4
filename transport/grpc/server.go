package grpc

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/mux"
	"github.com/weft-sdn/weft/transport/socket"
)

const (
	// window is how many unread bytes HTTP/2 may have in flight.
	window = 1 << 20
	// maxReceive is the largest message of gRPC taken.
	maxReceive = transport.MaxMessage + 64<<10
	// helloKey is the header with which the listening side opens a link.
	helloKey = "weft-link"
)

// NewServer returns a gRPC server for connections that have set up TLS already
// (see transport/socket). It passes links to m, and unary calls of unregistered
// methods to the handler. options add to its own.
func NewServer(h transport.Handler, m *mux.Server, options ...grpc.ServerOption) *grpc.Server {
	s := &server{h, m}
	options = append([]grpc.ServerOption{
		grpc.Creds(ready{}),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(maxReceive),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.MaxConcurrentStreams(1024),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 10 * time.Minute, Time: time.Minute, Timeout: 10 * time.Second}),
		grpc.UnknownServiceHandler(s.unknown),
		grpc.ChainUnaryInterceptor(withPeer), grpc.ChainStreamInterceptor(withPeerStream),
	}, options...)
	return grpc.NewServer(options...)
}

type server struct {
	handler transport.Handler
	links   *mux.Server
}

// unknown serves every unregistered method.
func (s *server) unknown(_ any, ss grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(ss)
	if full == linkMethod {
		return s.link(ss)
	}
	method, ok := methodOf(full)
	if !ok || s.handler == nil {
		return status.Errorf(codes.Unimplemented, "no method %s; call /weft/METHOD, or /PACKAGE.Service/Method for the method service.Method", full)
	}
	var req octets
	if err := ss.RecvMsg(&req); err != nil {
		return err
	}
	resp, err := transport.Answer(ss.Context(), s.handler, method, req)
	if err != nil {
		return status.Error(codes.Code(err.Code), err.Text)
	}
	// gRPC goes on writing after SendMsg returns; the handler must not wait for
	// that.
	answer := octets(append(make([]byte, 0, len(resp)), resp...))
	return ss.SendMsg(&answer)
}

// methodOf returns the method of a gRPC path.
func methodOf(full string) (string, bool) {
	service, method, ok := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	if !ok || method == "" {
		return "", false
	}
	if service == "weft" {
		return method, true
	}
	service = service[strings.LastIndexByte(service, '.')+1:]
	first, n := utf8.DecodeRuneInString(service)
	if n == 0 {
		return "", false
	}
	return string(unicode.ToLower(first)) + service[n:] + "." + method, true
}

// link serves one connection of this transport.
func (s *server) link(ss grpc.ServerStream) error {
	if err := ss.SendHeader(metadata.Pairs(helloKey, "1")); err != nil {
		return err
	}
	ended := make(chan struct{})
	l := &link{stream: ss, in: socket.Incoming(infoOf(ss.Context()).conn), end: sync.OnceFunc(func() { close(ended) })}
	go func() {
		s.links.Serve(l, transport.Peer(ss.Context()))
		l.end()
	}()
	// Only a return ends a stream, so another goroutine reads it.
	<-ended
	return nil
}

// infoOf returns what is known of the peer of a request.
func infoOf(ctx context.Context) authInfo {
	var info authInfo
	if p, ok := peer.FromContext(ctx); ok {
		info, _ = p.AuthInfo.(authInfo) // ready makes no other
	}
	return info
}

// identities returns those of the peer of a request.
func identities(ctx context.Context) []string { return socket.Peer(infoOf(ctx).state) }

// withPeer gives the handlers of registered services the identities of the
// caller.
func withPeer(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	return handle(transport.WithPeer(ctx, identities(ctx)), req)
}

func withPeerStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if ids := identities(ss.Context()); ids != nil {
		ss = &peerStream{ss, transport.WithPeer(ss.Context(), ids)}
	}
	return handle(srv, ss)
}

type peerStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *peerStream) Context() context.Context { return s.ctx }
