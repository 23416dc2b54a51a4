package serve

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/internal/shares"
)

// The most of each at once. Files are read in turn, others are refused beyond it.
const (
	maxConsoles = 64
	maxAttached = 64 // to all consoles
	maxCaptures = 16
	maxMeasures = 8 // pings, iperfs, traffic and usage
	maxReading  = 2 // files that are read or compared; one place is for administrators
	maxWaiting  = 64
	maxOwnWait  = 8 // of one client
)

// places bound what clients do at once.
type places struct{ reading, measures, captures, consoles, attached, jobs *shares.Places }

func newPlaces(log *slog.Logger) places {
	limited := func(l shares.Limits) *shares.Places {
		l.Evicted = shares.Sparsely(func(n uint64) {
			log.Warn("ended for other clients", "what", l.What, "times", n, "limit", l.Places)
		})
		return shares.New(l)
	}
	return places{
		reading:  limited(shares.Limits{What: "files", Places: maxReading, Reserved: 1, Waiting: maxWaiting, WaitingPerClient: maxOwnWait}),
		measures: limited(shares.Limits{What: "measurements", Places: maxMeasures}),
		captures: limited(shares.Limits{What: "captures", Places: maxCaptures}),
		consoles: limited(shares.Limits{What: "consoles", Places: maxConsoles}),
		attached: limited(shares.Limits{What: "attached consoles", Places: maxAttached}),
		jobs:     limited(shares.Limits{What: "jobs", Places: maxRunning, PerClient: maxRunning - 1}),
	}
}

// clientIn returns who takes places in a request.
func clientIn(ctx context.Context) shares.Client { return machineservice.CallerOf(ctx).Client() }

// await waits for the client's turn to have a file read, until leave.
func (p places) await(ctx context.Context) (leave func(), err error) {
	place, err := p.reading.Acquire(ctx, clientIn(ctx), nil)
	if err != nil {
		return nil, fullError(err)
	}
	return place.Release, nil
}

// enter takes a place at once, until leave; the context ends if another client gets
// it, and leave then returns why, instead of the error that it is given.
func enter(ctx context.Context, of *shares.Places) (_ context.Context, leave func(error) error, err error) {
	ctx, evict := context.WithCancelCause(ctx)
	place, err := of.TryAcquire(clientIn(ctx), evict)
	if err != nil {
		evict(err)
		return nil, nil, fullError(err)
	}
	return ctx, func(err error) error {
		place.Release()
		if evicted := (*shares.Evicted)(nil); errors.As(context.Cause(ctx), &evicted) {
			err = fullError(evicted)
		}
		evict(context.Canceled)
		return err
	}, nil
}

// fullError returns the error of a request for which there is no place.
func fullError(err error) error {
	full, evicted := (*shares.Full)(nil), (*shares.Evicted)(nil)
	if errors.As(err, &full) || errors.As(err, &evicted) {
		return api.Errorf(codes.ResourceExhausted, "%w", err)
	}
	return err
}
