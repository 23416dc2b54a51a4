package bus

import (
	"context"
	"sync"
)

// link is the state of a store's connection; goroutines wait for its changes.
type link struct {
	mu     sync.Mutex // guards those below
	there  bool
	alive  context.Context    // ends when the connection is lost
	lose   context.CancelFunc // of alive
	back   chan struct{}      // closed when connected
	closed chan struct{}      // closed when the store is
}

func newLink() *link {
	l := &link{there: true, back: make(chan struct{}), closed: make(chan struct{})}
	l.alive, l.lose = context.WithCancel(context.Background())
	close(l.back)
	return l
}

func (l *link) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.there {
		l.there, l.back = false, make(chan struct{})
		l.lose()
	}
}

func (l *link) up() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.there {
		l.there = true
		l.alive, l.lose = context.WithCancel(context.Background())
		close(l.back)
	}
}

// close is called once.
func (l *link) close() {
	l.down()
	close(l.closed)
}

// state returns a context that ends when the connection is lost, and a channel
// that is closed when it is up.
func (l *link) state() (alive context.Context, back <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alive, l.back
}
