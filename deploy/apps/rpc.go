package apps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"

	"github.com/weft-sdn/weft/api"
)

// helloTimeout is how long a connection may take to say who it is.
const helloTimeout = 5 * time.Second

// Register offers, over gRPC, every method of the services by its full name,
// such as /weft.v1.Hosts/FindHost, and Apps.Attach. The server's own limits on
// messages should allow 4 MiB.
func (o *Server) Register(s *grpc.Server) {
	for _, d := range o.offered() {
		s.RegisterService(d, nil)
	}
	api.RegisterAppsServer(s, &appsServer{o: o})
}

type appsServer struct {
	api.UnimplementedAppsServer
	o *Server
}

// Attach serves one app for as long as its stream lasts.
func (s *appsServer) Attach(stream grpc.BidiStreamingServer[api.FromApp, api.ToApp]) error {
	o := s.o
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	if err := o.known(stream.Context()); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(o.ctx)
	defer end(nil)
	received := make(chan error, 1)
	hello := make(chan *api.Hello)
	c := newConversation(ctx, "grpc", peerOf(stream.Context()))
	go func() { received <- receive(ctx, stream, c, hello) }()

	silent := time.NewTimer(helloTimeout)
	defer silent.Stop()
	var h *api.Hello
	select {
	case h = <-hello:
	case err := <-received:
		return err
	case <-silent.C:
		return api.Errorf(codes.DeadlineExceeded, "no hello within %v", helloTimeout)
	case <-ctx.Done():
		return api.Errorf(codes.Unavailable, "%w", errStops)
	}
	a, welcome, err := o.converse(stream.Context(), c, h)
	if err != nil {
		return err
	}
	go func() {
		if err := <-received; err != nil {
			a.end(err)
		} else {
			a.end(errLeft)
		}
	}()
	if err := stream.Send(&api.ToApp{Message: &api.ToApp_Welcome{Welcome: welcome}}); err != nil {
		a.end(err)
	}
	// Sending may block while the app does not read; it ends with the stream,
	// when this function returns.
	go func() {
		a.end(c.write(a.ctx, func(p *api.Packets) error {
			return stream.Send(&api.ToApp{Message: &api.ToApp_Packets{Packets: p}})
		}))
	}()
	<-c.gone
	return endedBy(context.Cause(a.ctx))
}

// errLeft is why an app that leaves is detached.
var errLeft = errors.New("it has left")

// endedBy is what a stream ends with.
func endedBy(cause error) error {
	switch e := (*api.Error)(nil); {
	case errors.Is(cause, errLeft):
		return nil
	case errors.As(cause, &e):
		return e
	case errors.Is(cause, errStops):
		return api.Errorf(codes.Unavailable, "%w", cause)
	}
	return api.Errorf(codes.Aborted, "%w", cause)
}

// receive reads what the app sends; nil when it has left.
func receive(ctx context.Context, stream grpc.BidiStreamingServer[api.FromApp, api.ToApp], c *conversation, hello chan<- *api.Hello) error {
	for first := true; ; first = false {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("connection lost: %s", textOf(err))
		}
		switch m := m.GetMessage().(type) {
		case *api.FromApp_Hello:
			if !first {
				return api.Errorf(codes.InvalidArgument, "a second hello: an app says it once")
			}
			select {
			case hello <- m.Hello:
			case <-ctx.Done():
				return nil
			}
		case *api.FromApp_Decisions:
			if err := c.answer(m.Decisions); err != nil {
				return err
			}
		default:
			return api.Errorf(codes.InvalidArgument, "a message that is empty: want hello or decisions")
		}
	}
}

// peerOf returns the address of a gRPC client.
func peerOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}
