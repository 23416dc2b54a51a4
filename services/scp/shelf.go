package scp

import (
	"context"
	"errors"
	"time"

	"github.com/weft-sdn/weft/object"
)

// shelf is how far what is known has been stored. The proxy's mu guards it.
type shelf struct {
	dirty  chan struct{} // notified when something has changed
	stored uint64        // the version that the store has
	turn   chan struct{} // closed when it has another one
}

func newShelf() shelf { return shelf{dirty: make(chan struct{}, 1), turn: make(chan struct{})} }

// How often what is known is stored at most, and how long VIPs wait for that.
const (
	shelveInterval = 100 * time.Millisecond
	shelveTime     = time.Second
)

// shelve stores what is known when it has changed, until ctx ends and once more.
func (p *proxy) shelve(ctx context.Context, instances, endpoints *object.Persister) {
	store := func(ctx context.Context) {
		version := func() uint64 { return p.version }
		err := errors.Join(instances.Follow(ctx, &p.mu, version, p.instances, p.cfg.Load().Instances),
			endpoints.Follow(ctx, &p.mu, version, p.stored, p.cfg.Load().Endpoints))
		if err != nil && ctx.Err() == nil {
			p.log.Warn("what is known of the core is not stored", "error", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.shelf.stored = min(instances.Stored(), endpoints.Stored()); p.shelf.stored != p.version {
			object.Notify(p.shelf.dirty)
		}
		close(p.shelf.turn)
		p.shelf.turn = make(chan struct{})
	}
	for {
		store(ctx)
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			store(last)
			return
		case <-time.After(shelveInterval):
		}
		select {
		case <-ctx.Done():
		case <-p.shelf.dirty:
		}
	}
}

// shelved waits until the store has what is known now, so that a run after this one
// knows every end point that a consumer knows; a store that is away is not waited
// for.
func (p *proxy) shelved(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shelveTime)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	for version := p.version; p.shelf.stored < version && ctx.Err() == nil; {
		turn := p.shelf.turn
		p.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-turn:
		}
		p.mu.Lock()
	}
}
