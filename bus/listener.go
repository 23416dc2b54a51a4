package bus

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weft-sdn/weft/transport"
)

// listener is a handler at an address.
type listener struct {
	peers   *peers
	address string
	handler transport.Handler
	id      string // decides between two that begin at once
	ctx     context.Context
	cancel  context.CancelFunc

	mu       sync.Mutex // guards those below
	settled  bool       // the address is ours
	beaten   bool       // another listener owns it
	closed   bool
	subs     []*nats.Subscription
	accepted map[*accepted]struct{}
}

// open claims the address and accepts connections.
func (l *listener) open() error {
	nc := l.peers.store.conn
	err := l.subscribe("claim", func(m *nats.Msg) {
		_ = m.Respond([]byte(l.meet(string(m.Data)) + " " + l.id)) // the other one waits only briefly
	})
	if err == nil {
		err = l.claim()
	}
	if err == nil {
		err = l.subscribe("open", func(m *nats.Msg) {
			if l.accept(string(m.Data)) == nil {
				_ = m.Respond(nil) // a dialer that misses it retries
			}
		})
	}
	if err == nil {
		err = nc.FlushTimeout(dialWait)
	}
	var known *transport.Error
	if err != nil && !errors.As(err, &known) {
		return transport.Errorf(transport.Unavailable, "listen at %q on the bus: %v", l.address, err)
	}
	return err
}

func (l *listener) subscribe(purpose string, f nats.MsgHandler) error {
	sub, err := l.peers.store.conn.Subscribe(at(l.address, purpose), f)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.subs = append(l.subs, sub)
	}
	return err
}

// meet answers another listener, given its id, that claims the address.
func (l *listener) meet(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settled {
		return "settled"
	}
	l.beaten = l.beaten || id < l.id
	return "new"
}

// settle takes the address; it reports whether it is ours.
func (l *listener) settle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = !l.beaten
	return l.settled
}

// claim asks who else is at the address: an earlier listener keeps it, or else
// the one with the lower id.
func (l *listener) claim() error {
	nc := l.peers.store.conn
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer answers.Unsubscribe()
	inUse := transport.Errorf(transport.Unavailable, "listen: address %q is in use on the bus; close its listener first, or stop the process that has it", l.address)
	rtt, err := nc.RTT()
	if err != nil {
		return err
	}
	if err := nc.PublishRequest(at(l.address, "claim"), inbox, []byte(l.id)); err != nil {
		return err
	}
	for end := time.Now().Add(max(claimWait, 4*rtt)); ; {
		m, err := answers.NextMsg(time.Until(end))
		if errors.Is(err, nats.ErrTimeout) {
			if !l.settle() {
				return inUse
			}
			return nil
		} else if err != nil {
			return err
		}
		state, id, _ := strings.Cut(string(m.Data), " ")
		if id != l.id && (state == "settled" || id < l.id) {
			return inUse
		}
	}
}

// Address returns the name given to Listen.
func (l *listener) Address() string { return l.address }

// Close ends the listener and all its connections.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	for _, sub := range l.subs {
		_ = sub.Unsubscribe() // fails only if the connection to NATS is closed
	}
	l.mu.Unlock()
	for _, c := range l.connections() {
		c.end()
	}
	l.cancel()
	l.peers.flush()
	l.peers.mu.Lock()
	defer l.peers.mu.Unlock()
	delete(l.peers.listeners, l)
	return nil
}

func (l *listener) connections() []*accepted {
	l.mu.Lock()
	defer l.mu.Unlock()
	var cs []*accepted
	for c := range l.accepted {
		cs = append(cs, c)
	}
	return cs
}

func (l *listener) cut() {
	for _, c := range l.connections() {
		c.depart()
	}
}

func (l *listener) mend() {
	for _, c := range l.connections() {
		c.mend()
	}
}
