package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/backoff"
)

// Patience is how long an operation without a deadline waits for a store that
// does not answer. The election of a new leader in a cluster takes up to ten
// seconds.
const Patience = 30 * time.Second

const (
	attemptWait = 2 * time.Second // for an answer, before asking again
	minPause    = 10 * time.Millisecond
	maxPause    = 250 * time.Millisecond
)

// errUnreadable means that the store cannot read an entry that it has.
var errUnreadable = errors.New("the store has it and cannot read it: its files are damaged")

// errTaken means that another process makes a stream at this moment.
var errTaken = errors.New("another process makes it at this moment")

var errClosed = errors.New("the store was closed")

// retry repeats an operation until it succeeds, fails permanently, or ctx ends.
// op may run several times, even after it has taken effect; what names it in
// errors.
func (s *Store) retry(ctx context.Context, what string, op func(context.Context) error) error {
	waiting := ctx
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, Patience)
		defer cancel()
	}
	for pauses := newPauses(); ; {
		err := s.attempt(waiting, op)
		if err == nil || !passing(err) || s.disk.failure() != "" {
			return s.fail(ctx, what, err)
		}
		if stopped := s.pause(waiting, pauses.Next()); stopped == errClosed {
			return s.fail(ctx, what, stopped)
		} else if stopped != nil {
			return s.fail(ctx, what, fmt.Errorf("no answer in time: %w", err))
		}
	}
}

// newPauses returns the pauses between attempts.
func newPauses() *backoff.Exponential {
	return &backoff.Exponential{First: minPause, Last: maxPause}
}

// attempt runs op once, while the connection lasts.
func (s *Store) attempt(ctx context.Context, op func(context.Context) error) error {
	alive, _ := s.link.state()
	ctx, cancel := context.WithTimeout(ctx, attemptWait)
	defer cancel()
	defer context.AfterFunc(alive, cancel)()
	err := op(ctx)
	s.seeker.tried(err)
	return err
}

// pause waits for d, and then for the connection.
func (s *Store) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for range 2 {
		_, back := s.link.state()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.link.closed:
			return errClosed
		case <-timer.C:
			timer.Reset(0)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.link.closed:
			return errClosed
		case <-back:
		}
	}
	return nil
}

// passingCodes are the temporary errors of JetStream: it is starting, electing
// a leader, or still handling the same message.
var passingCodes = []jetstream.ErrorCode{
	10004, // incomplete results
	10005, // no suitable peers for placement: servers are starting
	10008, // system temporarily unavailable
	10059, // stream not found: a new leader may not know it yet
	10158, // duplicate message id is in process
	10163, // expected last sequence per subject temporarily unavailable
}

// passing reports whether a retry may help.
func passing(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		return slices.Contains(passingCodes, refused.ErrorCode)
	}
	return slices.ContainsFunc([]error{
		nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		nats.ErrNoServers, nats.ErrStaleConnection, jetstream.ErrNoStreamResponse, context.DeadlineExceeded, context.Canceled,
		errSilent, errGap, errTaken,
	}, func(e error) bool { return errors.Is(err, e) })
}

// wrongSequence are JetStream's error codes for a revision that is not the
// last, from one server and from a cluster.
var wrongSequence = []jetstream.ErrorCode{
	jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant,
}

// overtaken reports whether another write came first.
func overtaken(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && slices.Contains(wrongSequence, refused.ErrorCode)
}

// fail converts an error of NATS into one of ours.
func (s *Store) fail(ctx context.Context, what string, err error) error {
	var refused *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, weft.ErrRevision) || overtaken(err):
		return weft.ErrRevision
	case s.disk.failure() != "" && (passing(err) || errors.Is(err, jetstream.ErrJetStreamNotEnabled)):
		return api.Errorf(codes.Unavailable, "%s: the data directory cannot be written to (%s); make room there, and it goes on by itself", what, s.disk.failure())
	case ctx.Err() != nil:
		return fmt.Errorf("%s at %s: %w (%v)", what, s.where(), ctx.Err(), err)
	case errors.Is(err, errUnreadable):
		return api.Errorf(codes.DataLoss, "%s at %s: %w; see weft store status, and run weft store repair", what, s.where(), err)
	case errors.Is(err, nats.ErrMaxPayload):
		return api.Errorf(codes.InvalidArgument, "%s: the value is larger than the %d octets that the store takes; split it", what, s.conn.MaxPayload())
	case errors.Is(err, errClosed) || errors.Is(err, nats.ErrConnectionClosed):
		return api.Errorf(codes.Unavailable, "%s: the store at %s is closed in this process", what, s.where())
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return api.Errorf(codes.FailedPrecondition, "%s at %s: %w; start that NATS server with JetStream (-js), and enable it for this account", what, s.where(), err)
	case refusedWith(err, codeAlone):
		n := s.replicas.wanted.Load()
		return api.Errorf(codes.FailedPrecondition, "%s: %d replicas are wanted (bus.replicas), but the server at %s is not part of a cluster; start it as one of a cluster of at least %d, or set bus.replicas: 1", what, n, s.where(), n)
	case errors.As(err, &refused):
		return api.Errorf(codes.Unavailable, "%s at %s: NATS refuses: %w (code %d)", what, s.where(), err, refused.ErrorCode)
	}
	return api.Errorf(codes.Unavailable, "%s at %s: %w; check that the server, or most of the cluster, runs and can be reached", what, s.where(), err)
}

// JetStream's error codes for servers that are missing.
const (
	codeNoPeers = 10005 // too few of the cluster are up
	codeAlone   = 10074 // the server is not part of a cluster
)

// noPeers reports whether too few servers of a cluster are up.
func noPeers(err error) bool { return refusedWith(err, codeNoPeers) }

func refusedWith(err error, code jetstream.ErrorCode) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == code
}
