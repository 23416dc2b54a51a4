package qos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// Bounds of queues: as many as linux-htb has, on so many ports.
const (
	queueMax   = 61439
	queuesMax  = 64
	portsMax   = 4096
	priorities = 7
)

// The states of a port's queues.
const (
	configured = "configured"
	removing   = "removing" // kept until the database has confirmed
)

// The times between tries to configure a port.
const (
	retryFirst = time.Second
	retryLast  = time.Minute
)

// ports holds the queues that ports should have. It stores them and brings them
// into the databases of their switches.
type ports struct {
	try  func(ctx context.Context, q *api.QosQueues) error // brings queues to a port, or takes them away if they are removing
	now  func() time.Time
	wake chan struct{}

	mu     object.Guard // guards the following
	queues *object.Store[*portQueues]
	states map[string]*portState
	moved  chan struct{} // closed and replaced when a state changes
}

// portQueues is the queues that one port should have.
type portQueues struct {
	said     *api.QosQueues // without state; read-only
	removing bool
}

// portState is how far the port has them.
type portState struct {
	state  string
	reason string
	due    time.Time // when to try
	pause  time.Duration
	busy   bool
	asked  uint64 // counts changes
}

func newPorts(store object.Bucket, now func() time.Time, try func(context.Context, *api.QosQueues) error, bad func(key string, err error)) *ports {
	p := &ports{try: try, now: now, wake: make(chan struct{}, 1), states: map[string]*portState{}, moved: make(chan struct{})}
	p.queues = object.New(&p.mu, store, object.Kind[*portQueues]{
		What: "port", Many: "ports with queues", Most: func() int { return portsMax },
		Name:    (*portQueues).key,
		Format:  object.Messages(parseQueues, (*portQueues).message),
		Changed: p.changed, Bad: bad,
	})
	return p
}

func (q *portQueues) key() string { return portKey(q.said.Dpid, q.said.Port) }

// message returns the queues in the form that is stored and brought to the port.
func (q *portQueues) message() *api.QosQueues {
	m := proto.CloneOf(q.said)
	if q.removing {
		m.State = removing
	}
	return m
}

// parseQueues reads the result of message.
func parseQueues(m *api.QosQueues) (*portQueues, error) {
	said, err := readQueues(m)
	return &portQueues{said, m.GetState() == removing}, err
}

// readQueues reads and checks the queues of a port, and returns them in one form.
func readQueues(m *api.QosQueues) (*api.QosQueues, error) {
	if m == nil {
		return nil, errors.New("queues: missing")
	}
	m = proto.CloneOf(m)
	m.State, m.Reason = "", ""
	sw, err := flow.ParseDPID(m.Dpid)
	if err != nil {
		return nil, err
	}
	m.Dpid = sw.String()
	if !flow.Port(m.Port).Physical() {
		return nil, fmt.Errorf("port %d: want 1 to %d", m.Port, uint32(flow.PortMax))
	}
	if n := len(m.Queues); n == 0 || n > queuesMax {
		return nil, fmt.Errorf("%d queues: want 1 to %d; DeleteQueues takes all away", n, queuesMax)
	}
	slices.SortFunc(m.Queues, func(a, b *api.QosQueue) int { return int(a.GetId()) - int(b.GetId()) })
	for i, q := range m.Queues {
		switch {
		case q == nil:
			return nil, errors.New("queue: missing")
		case q.Id > queueMax:
			return nil, fmt.Errorf("queue %d: want 0 to %d", q.Id, queueMax)
		case i > 0 && m.Queues[i-1].Id == q.Id:
			return nil, fmt.Errorf("queue %d: twice", q.Id)
		case q.MaxKbps != 0 && q.MinKbps > q.MaxKbps:
			return nil, fmt.Errorf("queue %d: min_kbps %d is more than max_kbps %d", q.Id, q.MinKbps, q.MaxKbps)
		case q.Priority > priorities:
			return nil, fmt.Errorf("queue %d: priority %d: want 0 to %d", q.Id, q.Priority, priorities)
		}
	}
	return m, nil
}

func portKey(dpid string, port uint32) string { return fmt.Sprintf("%s/%d", dpid, port) }

// changed follows a change of a port's wanted queues. It is called with mu held.
func (p *ports) changed(old, now *portQueues) {
	if now == nil {
		if key := old.key(); !p.states[key].busy { // else configure does so
			delete(p.states, key)
		}
	} else {
		s := p.states[now.key()]
		if s == nil {
			s = &portState{}
			p.states[now.key()] = s
		}
		*s = portState{state: pending, due: p.now(), busy: s.busy, asked: s.asked + 1}
	}
	p.ring()
}

// set stores the queues of a port; then they are configured.
func (p *ports) set(ctx context.Context, m *api.QosQueues) (key string, err error) {
	m, err = readQueues(m)
	if err != nil {
		return "", api.Errorf(codes.InvalidArgument, "%w", err)
	}
	q := &portQueues{said: m}
	old, now, err := p.queues.Change(ctx, q.key(), func(*portQueues) (*portQueues, error) { return q, nil })
	if err == nil && old == now {
		p.again(q.key())
	}
	return q.key(), err
}

// remove removes the queues of a port. It reports whether there were some.
func (p *ports) remove(ctx context.Context, dpid string, port uint32) (key string, there bool, err error) {
	sw, err := flow.ParseDPID(dpid)
	if err != nil {
		return "", false, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	key = portKey(sw.String(), port)
	old, now, err := p.queues.Change(ctx, key, func(old *portQueues) (*portQueues, error) {
		if old == nil || old.removing {
			return old, nil
		}
		return &portQueues{old.said, true}, nil
	})
	return key, old != now, err
}

// again retries a port at once if it is not yet as wanted.
func (p *ports) again(key string) {
	p.mu.Lock()
	if s := p.states[key]; s != nil && s.state != configured {
		s.due, s.pause = p.now(), 0
	}
	p.mu.Unlock()
	p.ring()
}

// retry configures the ports of a switch anew, of all if dpid is empty: the
// switch may have been replaced or restarted, or be reached another way.
func (p *ports) retry(dpid string) {
	p.mu.Lock()
	for _, q := range p.queues.List() {
		if s := p.states[q.key()]; dpid == "" || q.said.Dpid == dpid {
			s.due, s.pause = p.now(), 0
			s.asked++
		}
	}
	p.mu.Unlock()
	p.ring()
}

func (p *ports) ring() { object.Notify(p.wake) }

// run configures the ports that are due until ctx ends, a few at a time.
func (p *ports) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	slots := make(chan struct{}, 4)
	for {
		q, wait := p.next()
		if q == nil {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			case <-p.wake:
				timer.Stop()
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		work.Go(func() {
			defer func() { <-slots }()
			p.configure(ctx, q)
		})
	}
}

// next returns a port that is due and marks it busy; nil, and how long to wait,
// if none is.
func (p *ports) next() (*portQueues, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait, now := time.Minute, p.now()
	for _, q := range p.queues.List() {
		s := p.states[q.key()]
		if s.busy || s.due.IsZero() {
			continue
		}
		if d := s.due.Sub(now); d > 0 {
			wait = min(wait, d)
			continue
		}
		s.busy = true
		return q, 0
	}
	return nil, wait
}

// configure tries one port once.
func (p *ports) configure(ctx context.Context, q *portQueues) {
	key := q.key()
	p.mu.Lock()
	q, s := p.queues.Get(key), p.states[key]
	asked := s.asked
	p.mu.Unlock()
	var err error
	if q != nil {
		err = p.try(ctx, q.message())
	}
	if q != nil && q.removing && err == nil {
		_, _, err = p.queues.Change(ctx, key, func(old *portQueues) (*portQueues, error) {
			if s.asked != asked { // it has got others meanwhile
				return old, nil
			}
			return nil, nil
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { close(p.moved); p.moved = make(chan struct{}); p.ring() }()
	s.busy = false
	switch {
	case p.queues.Get(key) == nil:
		delete(p.states, key)
	case s.asked != asked: // the wanted queues have changed: due at once
	case err == nil:
		s.state, s.reason, s.due, s.pause = configured, "", time.Time{}, 0
	default:
		s.state, s.reason = failing, err.Error()
		s.pause = min(max(2*s.pause, retryFirst), retryLast)
		s.due = p.now().Add(s.pause)
	}
}

// settle waits until a port is as wanted, has failed to become so, or ctx ends.
func (p *ports) settle(ctx context.Context, key string) {
	for {
		p.mu.Lock()
		s, moved := p.states[key], p.moved
		waiting := s != nil && s.state == pending
		p.mu.Unlock()
		if !waiting {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		}
	}
}

// list returns the wanted queues of ports with their state; of one port if key is
// not empty.
func (p *ports) list(key string) []*api.QosQueues {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*api.QosQueues
	for _, q := range p.queues.List() {
		if key != "" && q.key() != key {
			continue
		}
		m, s := proto.CloneOf(q.said), p.states[q.key()]
		if m.State, m.Reason = s.state, s.reason; q.removing {
			m.State = removing
		}
		list = append(list, m)
	}
	return list
}
