package qos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// What queues may be: as many as linux-htb has, on so many ports.
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

// ports is the queues that ports are to have, kept in the store and brought
// into the databases of their switches.
type ports struct {
	store Store
	try   func(ctx context.Context, q *api.QosQueues) error // brings queues to a port, or takes them away if they are removing
	now   func() time.Time

	writing sync.Mutex // held while something is written to the store

	mu    sync.Mutex // guards the following
	ports map[string]*portQueues
	wake  chan struct{}
	moved chan struct{} // closed and replaced when a state changes
}

// portQueues is what one port is to have.
type portQueues struct {
	said     *api.QosQueues // without state; nobody writes to it
	removing bool
	revision uint64
	state    string
	reason   string
	due      time.Time // when to try
	pause    time.Duration
	busy     bool
	asked    uint64 // counts changes
}

func newPorts(store Store, now func() time.Time, try func(context.Context, *api.QosQueues) error) *ports {
	return &ports{store: store, try: try, now: now, ports: map[string]*portQueues{}, wake: make(chan struct{}, 1), moved: make(chan struct{})}
}

// readQueues reads and checks the queues of a port, and brings them into one form.
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

// load reads the queues of earlier runs.
func (p *ports) load(ctx context.Context, bad func(key string, err error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.store.All(ctx, func(key string, value []byte, revision uint64) error {
		m := &api.QosQueues{}
		err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(value, m)
		gone := m.State == removing
		if err == nil {
			m, err = readQueues(m)
		}
		if err == nil && portKey(m.Dpid, m.Port) != key {
			err = fmt.Errorf("describes the queues of %s", portKey(m.Dpid, m.Port))
		}
		if err != nil {
			bad(key, err)
			return nil
		}
		p.ports[key] = &portQueues{said: m, removing: gone, revision: revision, state: pending, due: p.now()}
		return nil
	})
}

// set keeps the queues of a port, and has them configured.
func (p *ports) set(ctx context.Context, m *api.QosQueues) (key string, err error) {
	m, err = readQueues(m)
	if err != nil {
		return "", api.Errorf(codes.InvalidArgument, "%w", err)
	}
	return portKey(m.Dpid, m.Port), p.keep(ctx, m, false)
}

// remove has the queues of a port taken away. It reports whether there were some.
func (p *ports) remove(ctx context.Context, dpid string, port uint32) (key string, there bool, err error) {
	sw, err := flow.ParseDPID(dpid)
	if err != nil {
		return "", false, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	key = portKey(sw.String(), port)
	p.mu.Lock()
	old := p.ports[key]
	p.mu.Unlock()
	if old == nil || old.removing {
		return key, false, nil
	}
	return key, true, p.keep(ctx, old.said, true)
}

// keep writes what a port is to have, unless that is kept already.
func (p *ports) keep(ctx context.Context, m *api.QosQueues, gone bool) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	key := portKey(m.Dpid, m.Port)
	p.mu.Lock()
	old := p.ports[key]
	full := old == nil && len(p.ports) >= portsMax
	p.mu.Unlock()
	if full {
		return api.Errorf(codes.ResourceExhausted, "queues of %s: %d ports have queues already; delete those of one", key, portsMax)
	}
	revision := uint64(0)
	if old != nil {
		if old.removing == gone && proto.Equal(old.said, m) {
			p.again(key)
			return nil
		}
		revision = old.revision
	}
	kept := proto.CloneOf(m)
	if gone {
		kept.State = removing
	}
	value, err := protojson.Marshal(kept)
	if err == nil {
		revision, err = p.store.Update(ctx, key, value, revision)
	}
	if err != nil {
		return api.Errorf(codes.Unavailable, "queues of %s are not kept, so they are not changed: %w", key, err)
	}
	p.mu.Lock()
	next := &portQueues{said: m, removing: gone, revision: revision, state: pending, due: p.now()}
	if old != nil {
		next.busy, next.asked = old.busy, old.asked+1
	}
	p.ports[key] = next
	p.mu.Unlock()
	p.ring()
	return nil
}

// again has a port that is not as it is to be tried at once.
func (p *ports) again(key string) {
	p.mu.Lock()
	if q := p.ports[key]; q != nil && q.state != configured {
		q.due, q.pause = p.now(), 0
	}
	p.mu.Unlock()
	p.ring()
}

// switchConnected has the ports of a switch configured anew: it may be another
// one than before, or have started afresh.
func (p *ports) switchConnected(dpid string) {
	p.mu.Lock()
	for _, q := range p.ports {
		if q.said.Dpid == dpid {
			q.due, q.pause = p.now(), 0
			q.asked++
		}
	}
	p.mu.Unlock()
	p.ring()
}

// retry has every port configured anew at once: the way to it may be another.
func (p *ports) retry() {
	p.mu.Lock()
	for _, q := range p.ports {
		q.due, q.pause = p.now(), 0
		q.asked++
	}
	p.mu.Unlock()
	p.ring()
}

func (p *ports) ring() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run configures what is due until ctx ends, a few ports at a time.
func (p *ports) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	slots := make(chan struct{}, 4)
	for {
		key, q, wait := p.next()
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
			p.configure(ctx, key)
		})
	}
}

// next returns a port that is due and marks it busy; nil, and how long to wait,
// if none is.
func (p *ports) next() (string, *portQueues, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait, now := time.Minute, p.now()
	for _, key := range slices.Sorted(maps.Keys(p.ports)) {
		q := p.ports[key]
		if q.busy || q.due.IsZero() {
			continue
		}
		if d := q.due.Sub(now); d > 0 {
			wait = min(wait, d)
			continue
		}
		q.busy = true
		return key, q, 0
	}
	return "", nil, wait
}

// configure tries one port once.
func (p *ports) configure(ctx context.Context, key string) {
	p.mu.Lock()
	q := p.ports[key]
	asked := q.asked
	m := proto.CloneOf(q.said)
	if q.removing {
		m.State = removing
	}
	p.mu.Unlock()
	err := p.try(ctx, m)
	if err == nil && m.State == removing {
		err = p.forget(ctx, key, asked)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { close(p.moved); p.moved = make(chan struct{}); p.ring() }()
	if q = p.ports[key]; q == nil {
		return
	}
	q.busy = false
	switch {
	case q.asked != asked: // something else is wanted by now: due at once
	case err == nil:
		q.state, q.reason, q.due, q.pause = configured, "", time.Time{}, 0
	default:
		q.state, q.reason = failing, err.Error()
		q.pause = min(max(2*q.pause, retryFirst), retryLast)
		q.due = p.now().Add(q.pause)
	}
}

// forget removes what is kept of a port whose queues are gone, unless it has
// been given others meanwhile.
func (p *ports) forget(ctx context.Context, key string, asked uint64) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	q := p.ports[key]
	stale := q == nil || q.asked != asked
	p.mu.Unlock()
	if stale {
		return nil
	}
	if err := p.store.Delete(ctx, key); err != nil {
		return err
	}
	p.mu.Lock()
	delete(p.ports, key)
	p.mu.Unlock()
	return nil
}

// settle waits until a port is as it is to be, has failed to become so, or ctx
// ends.
func (p *ports) settle(ctx context.Context, key string) {
	for {
		p.mu.Lock()
		q, moved := p.ports[key], p.moved
		waiting := q != nil && q.state == pending
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

// list returns what ports are to have, with its state; of one port if key is
// not empty.
func (p *ports) list(key string) []*api.QosQueues {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*api.QosQueues
	for _, k := range slices.Sorted(maps.Keys(p.ports)) {
		q := p.ports[k]
		if key != "" && k != key {
			continue
		}
		m := proto.CloneOf(q.said)
		m.State, m.Reason = q.state, q.reason
		if q.removing {
			m.State = removing
		}
		list = append(list, m)
	}
	return list
}
