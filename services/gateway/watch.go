package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/northbound"
	"github.com/weft-sdn/weft/internal/shares"
)

// watchPath is where clients watch packets; the answer is a stream of lines.
const watchPath = "/v1/pipeline:watch"

// watchBeat is how often a client that watches packets gets a line at least.
const watchBeat = 10 * time.Second

// Packets samples packet-ins in all processes.
type Packets interface {
	// WatchPackets calls a function for each sampled packet-in that is asked for,
	// with an empty answer at first and whenever beat has passed without one, until
	// the context ends or the function fails.
	WatchPackets(ctx context.Context, r *api.WatchPacketsRequest, beat time.Duration, tell func(*api.WatchPacketsResponse) error) error
}

// watchersMost is how many clients may watch packets at once.
const watchersMost = 8

// watching serves watchPath.
type watching struct {
	packets Packets
	calls   *calls
	guard   *guard
	ended   func(codes.Code)
	places  *shares.Places
	stop    context.Context // ends all answers
}

// enter gives a client a place; its context ends when it has to leave.
func (p *watching) enter(ctx context.Context) (context.Context, func(), error) {
	ctx, end := p.guard.lasting(ctx)
	ctx, evict := context.WithCancelCause(ctx)
	cancel := func() { evict(context.Canceled); end() }
	place, err := p.places.TryAcquire(callerOf(ctx).client(), evict)
	if err != nil {
		cancel()
		return nil, nil, status.Errorf(codes.ResourceExhausted, "%d clients watch packets already, and no more may at once; end one of them", p.places.Limit())
	}
	return ctx, func() { place.Release(); cancel() }, nil
}

// errStop ends a watch from within.
var errStop = errors.New("the watch ends")

// next answers a call without a stream: with the next packet, or with nothing if
// none comes in time.
func (p *watching) next(ctx context.Context, r *api.WatchPacketsRequest) (*api.WatchPacketsResponse, error) {
	ctx, leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	resp, lines := &api.WatchPacketsResponse{}, 0
	err = p.packets.WatchPackets(ctx, r, watchBeat, func(line *api.WatchPacketsResponse) error {
		resp = line
		if lines++; lines > 1 || line.Packet != nil {
			return errStop
		}
		return nil
	})
	if evicted := (*shares.Evicted)(nil); errors.As(context.Cause(ctx), &evicted) {
		return nil, status.Error(codes.ResourceExhausted, evicted.Error())
	}
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	return resp, nil
}

// ServeHTTP answers one client until it goes, or loses the right to watch.
func (p *watching) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := p.read(r)
	if err == nil {
		err = p.follow(w, r, req)
	}
	if err != nil { // nothing has been written
		s := status.Convert(kinded(err))
		p.ended(s.Code())
		refuse(w, r, s.Code(), s.Message())
	}
}

// read reads the request of a client that may watch.
func (p *watching) read(r *http.Request) (*api.WatchPacketsRequest, error) {
	if err := p.calls.permit(r.Context(), api.Gateway_WatchPackets_FullMethodName); err != nil {
		return nil, err
	}
	req := &api.WatchPacketsRequest{}
	if r.URL.RawQuery != "" {
		return nil, status.Error(codes.InvalidArgument, "there are parameters in the address; the body says what is watched")
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		return nil, unread(err)
	}
	if len(bytes.TrimSpace(body.Bytes())) == 0 {
		return req, nil
	}
	octets, err := sizeOfJSON(body.Bytes())
	if err == nil {
		err = room(northbound.Hold(r.Context(), octets))
	}
	if err == nil {
		err = newJSONCodec().Unmarshal(body.Bytes(), req)
	}
	if err != nil && status.Code(err) == codes.Unknown {
		err = status.Error(codes.InvalidArgument, err.Error())
	}
	return req, err
}

// follow writes a line for each packet. Its error is one of before the first.
func (p *watching) follow(w http.ResponseWriter, r *http.Request, req *api.WatchPacketsRequest) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.stop, cancel)()
	ctx, leave, err := p.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	defer northbound.Follow(ctx)()
	control, who := http.NewResponseController(w), callerOf(ctx)
	begun := false
	err = p.packets.WatchPackets(ctx, req, watchBeat, func(line *api.WatchPacketsResponse) error {
		if !p.guard.holds(who) {
			return errStop
		}
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.WriteHeader(http.StatusOK)
			_ = control.SetReadDeadline(time.Time{}) // it would end the answer
		}
		text, err := written().Marshal(line)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := json.Compact(&b, text); err != nil {
			return err
		}
		b.WriteByte('\n')
		if _, err := w.Write(b.Bytes()); err != nil {
			return err
		}
		return control.Flush()
	})
	if begun {
		return nil // all that can be said now is the end
	}
	return err
}
