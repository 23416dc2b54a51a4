// Package grpc is the transport over gRPC. All calls of a connection
// go over one stream in both directions, which costs a third of what a unary
// call does. Any gRPC client may besides make unary calls: of
// /weft/METHOD with octets, or of a method of a service in a .proto file, such
// as /weft.v1.Hosts/FindHost, which is the method hosts.FindHost.
//
// Packages deploy and transport/port import it. It imports gRPC, transport,
// and transport/mux and transport/socket.
package grpc

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/mux"
	"github.com/weft-sdn/weft/transport/socket"
)

// linkMethod is the method of the stream, with the version of what it carries.
const linkMethod = "/weft.transport.v1.Link/Open"

// Transport is the transport over gRPC.
type Transport struct {
	// Heartbeat may be set before first use.
	Heartbeat transport.Heartbeat
	tls       *tls.Config
}

// New returns a transport, with TLS if a configuration is given. It serves
// for both sides.
func New(tlsConfig *tls.Config) *Transport { return &Transport{tls: tlsConfig} }

// Listen offers a handler at "host:port" or "unix:PATH".
func (t *Transport) Listen(address string, h transport.Handler) (transport.Listener, error) {
	l, err := socket.Listen(address, socket.Config{TLS: t.tls})
	if err != nil {
		return nil, err
	}
	_ = l.HTTP1().Close() // refuse them; never fails
	m := mux.NewServer(h, t.Heartbeat)
	s := NewServer(h, m)
	go func() { _ = s.Serve(l.HTTP2()) }() // ends with the listener
	return &listener{l, m, s}, nil
}

type listener struct {
	*socket.Listener
	links *mux.Server
	grpc  *grpc.Server
}

func (l *listener) Close() error {
	l.links.Close()
	err := l.Listener.Close()
	l.grpc.Stop()
	return err
}

// Dial connects to an address.
func (t *Transport) Dial(ctx context.Context, address string) (transport.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, transport.ErrorOf(err)
	}
	conn, err := socket.Dial(ctx, address, t.tls, "h2")
	if err != nil {
		return nil, err
	}
	once := make(chan net.Conn, 1)
	once <- conn
	cc, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case conn := <-once:
				return conn, nil
			default: // a connection that has failed stays failed
				return nil, errors.New("the connection is lost")
			}
		}),
		grpc.WithTransportCredentials(ready{}),
		grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(maxReceive)),
	)
	if err != nil {
		_ = conn.Close() // never used
		return nil, transport.Errorf(transport.Unavailable, "dial %s: %v", address, err)
	}
	streamCtx, cancel := context.WithCancel(context.Background())
	end := sync.OnceFunc(func() { cancel(); _ = cc.Close() }) // it is of no further use
	// Until the peer has answered, ctx ends the attempt.
	stop := context.AfterFunc(ctx, end)
	patience := time.AfterFunc(10*time.Second, end)
	defer patience.Stop()
	s, err := cc.NewStream(streamCtx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, linkMethod, grpc.WaitForReady(false))
	if err == nil {
		_, err = s.Header()
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = firstError(s)
	}
	if err != nil {
		end()
		_ = conn.Close() // gRPC may not have come to it
		if e := ctx.Err(); e != nil {
			return nil, transport.ErrorOf(e)
		}
		return nil, transport.Errorf(transport.Unavailable, "dial %s: %v", address, err)
	}
	return mux.NewClient(&link{stream: s, in: socket.Incoming(conn), end: end}, address, t.Heartbeat), nil
}

// firstError returns why a stream was refused; nil if it was not.
func firstError(s grpc.ClientStream) error {
	header, err := s.Header()
	if err == nil && len(header.Get(helloKey)) == 0 {
		err = s.RecvMsg(&message{})
		if err == nil {
			err = errors.New("the peer does not speak weft's protocol")
		}
	}
	return err
}

// ready are credentials for connections that have their TLS already.
type ready struct{}

func (ready) handshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	info := authInfo{conn: conn, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	if state := socket.State(conn); state != nil {
		info.state, info.SecurityLevel = state, credentials.PrivacyAndIntegrity
	}
	return conn, info, nil
}

func (r ready) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return r.handshake(conn)
}

func (r ready) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return r.handshake(conn)
}

func (ready) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "weft"}
}
func (r ready) Clone() credentials.TransportCredentials { return r }
func (ready) OverrideServerName(string) error           { return nil }

// authInfo is what is known of a peer.
type authInfo struct {
	credentials.CommonAuthInfo
	conn  net.Conn
	state *tls.ConnectionState
}

func (authInfo) AuthType() string { return "weft" }
