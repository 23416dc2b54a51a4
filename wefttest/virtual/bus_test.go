package virtual

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// storePatience is how long an operation waits for the store if its context has
// no deadline, as bus.Patience.
const storePatience = 30 * time.Second

// bus is the store, with the ways in which it fails.
type bus struct {
	*wefttest.Store
	chance *chance
	trace  *trace

	mu      sync.Mutex                // guards what follows
	back    chan struct{}             // closed while the store is there
	reached map[string]chan struct{}  // by process that is cut off from it: closed when it no longer is
	room    chan struct{}             // closed while its disk has room
	lag     time.Duration             // bound of what each operation and each change takes
	written func(process string) bool // is called as count says; nil: nobody asks
}

func newBus(c *chance, t *trace) *bus {
	b := &bus{Store: wefttest.NewStore(), chance: c, trace: t, back: make(chan struct{}), room: make(chan struct{}), reached: map[string]chan struct{}{}, lag: time.Millisecond}
	close(b.back)
	close(b.room)
	return b
}

// away takes the store away from a process, or, with "", from all.
func (b *bus) away(process string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if process == "" {
		b.back = reopen(b.back)
	} else if b.reached[process] == nil {
		b.reached[process] = make(chan struct{})
	}
}

// fill fills its disk: what is read is answered, and writes wait.
func (b *bus) fill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room = reopen(b.room)
}

// reopen returns a channel that is not closed: c if it is not.
func reopen(c chan struct{}) chan struct{} {
	if closed(c) {
		return make(chan struct{})
	}
	return c
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// mend ends all that away, fill and slow have done.
func (b *bus) mend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range []chan struct{}{b.back, b.room} {
		if !closed(c) {
			close(c)
		}
	}
	for _, p := range sorted(b.reached) {
		close(b.reached[p])
		delete(b.reached, p)
	}
	b.lag = time.Millisecond
}

// errKilled is what a process gets of the store that is killed at a write.
var errKilled = errors.New("the process is killed")

// count tells of a write that is about to be done. It reports whether that is left out
// if the process has been killed by whoever was told.
func (b *bus) count(process string) (leaveOut bool) {
	b.mu.Lock()
	f := b.written
	b.mu.Unlock()
	return f != nil && f(process)
}

// onWrite has f called for each write that is about to be done, as count says.
func (b *bus) onWrite(f func(process string) (leaveOut bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written = f
}

// whole reports whether every process reaches the store as usual.
func (b *bus) whole() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return closed(b.back) && closed(b.room) && len(b.reached) == 0 && b.lag == time.Millisecond
}

func (b *bus) slow(lag time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lag = lag
}

// reach waits until a process reaches the store.
func (b *bus) reach(ctx context.Context, process string) error {
	for {
		b.mu.Lock()
		back, reached, lag := b.back, b.reached[process], b.lag
		b.mu.Unlock()
		select {
		case <-back:
		case <-ctx.Done():
			return ctx.Err()
		}
		if reached == nil {
			if !rest(ctx, b.chance.within(lag)) {
				return ctx.Err()
			}
			return nil
		}
		select {
		case <-reached:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// haveRoom waits while the disk is full, as an operation does, at most as bus.Patience.
func (b *bus) haveRoom(ctx context.Context) error {
	b.mu.Lock()
	room := b.room
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return api.Errorf(codes.Unavailable, "the data directory cannot be written to")
	}
}

// seat is the store as one process has it.
type seat struct {
	bus  *bus
	gate *gate
	skew time.Duration // of the store's clock, as this process has read it
}

func (s *seat) Bucket(ctx context.Context, name string) (weft.Bucket, error) {
	if err := s.ask(ctx); err != nil {
		return nil, err
	}
	b, err := s.bus.Store.Bucket(ctx, name)
	return &gated{b, s, name}, err
}

// Now returns the time by the store's clock.
func (s *seat) Now(ctx context.Context) (time.Time, error) {
	err := s.ask(ctx)
	return time.Now().Add(s.skew), err
}

// ask waits until an operation of the process reaches the store, and fails as
// the bus does.
func (s *seat) ask(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, storePatience)
		defer cancel()
	}
	err := s.gate.pass(ctx)
	if err == nil {
		err = s.bus.reach(ctx, s.gate.process)
	}
	if err != nil {
		return api.Errorf(codes.Unavailable, "the store does not answer: %v", err)
	}
	return nil
}

// gated is a bucket as one process has it. An answer may be lost, and its
// operation done.
type gated struct {
	weft.Bucket
	seat *seat
	name string
}

// do does an operation on a key, and returns the value and the revision that come of it.
func (b *gated) do(ctx context.Context, what, key string, operation func() ([]byte, uint64, error)) ([]byte, uint64, error) {
	if err := b.seat.ask(ctx); err != nil {
		return nil, 0, err
	}
	if what != "get" {
		if err := b.seat.bus.haveRoom(ctx); err != nil {
			return nil, 0, err
		}
	}
	if what != "get" && b.seat.bus.count(b.seat.gate.process) && b.seat.gate.dead() {
		return nil, 0, errKilled
	}
	value, revision, err := operation()
	b.seat.bus.trace.add(fmt.Sprintf("%s %s %s/%s %d %s", b.seat.gate.process, what, b.name, key, revision, textOf(err)), value)
	if lost := b.seat.ask(ctx); lost != nil {
		return nil, 0, lost
	}
	return value, revision, err
}

func (b *gated) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	return b.do(ctx, "get", key, func() ([]byte, uint64, error) { return b.Bucket.Get(ctx, key) })
}

func (b *gated) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	_, revision, err := b.do(ctx, "put", key, func() ([]byte, uint64, error) {
		revision, err := b.Bucket.Put(ctx, key, value)
		return value, revision, err
	})
	return revision, err
}

func (b *gated) Update(ctx context.Context, key string, value []byte, over uint64) (uint64, error) {
	_, revision, err := b.do(ctx, "update", key, func() ([]byte, uint64, error) {
		revision, err := b.Bucket.Update(ctx, key, value, over)
		return value, revision, err
	})
	return revision, err
}

func (b *gated) Delete(ctx context.Context, key string) error {
	_, _, err := b.do(ctx, "delete", key, func() ([]byte, uint64, error) { return nil, 0, b.Bucket.Delete(ctx, key) })
	return err
}

func (b *gated) All(ctx context.Context, f func(string, []byte, uint64) error) error {
	if err := b.seat.ask(ctx); err != nil {
		return err
	}
	return b.Bucket.All(ctx, f)
}

func (b *gated) Watch(ctx context.Context, f func(string, []byte, uint64)) error {
	if err := b.seat.ask(ctx); err != nil {
		return err
	}
	return b.Bucket.Watch(ctx, func(key string, value []byte, revision uint64) {
		if b.seat.gate.pass(ctx) != nil || b.seat.bus.reach(ctx, b.seat.gate.process) != nil {
			return // it is over
		}
		f(key, value, revision)
	})
}
