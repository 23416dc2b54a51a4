package deploy

import (
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/backoff"
)

// senders send the events of this process to those in which services want them.
type senders struct {
	members *membership
	worker  *local.Worker
	log     *slog.Logger
	to      map[string]*sender // by process; guarded by the lock of members
}

// sender sends events to one run of another process. It sends a queue in
// numbered batches, one at a time, and repeats a batch until it is
// acknowledged. So events arrive once and in order as long as both processes
// live. It drops a queue that overflows, because the receiver is too slow or
// down, and sends all retained events anew once the receiver accepts batches
// again.
type sender struct {
	senders *senders
	peer    *members.Peer
	wake    local.Signal
	stop    context.CancelFunc

	mu      sync.Mutex // guards what follows
	queue   []queued
	bytes   int
	number  uint64 // of the first in the queue; higher than those of any earlier sender
	lost    uint64 // events dropped since the queue was last complete
	subs    map[string]*remoteService
	stopped bool
}

// remoteService is a service in the other process that wants events of ours.
type remoteService struct {
	service  string
	epoch    uint64
	subjects []*local.Subject
	runs     map[*local.Subject]uint64 // the publisher's run whose retained events it has, all of them
	gone     atomic.Bool               // it has stopped
}

// queued is one event for one service.
type queued struct {
	kind    byte
	subject string
	service string
	epoch   uint64 // of the service
	source  publisher
	data    []byte
	at      int64 // of its publication, in nanoseconds since 1970; 0 of what is sent again
}

// The kinds.
const (
	eventHappened = 0 // an event
	eventComplete = 1 // all retained events of the subject have been sent
	eventAnew     = 2 // they follow; a fact sent before that is not among them is gone
)

// Bounds of a queue and of a batch.
const (
	queueEvents = 1 << 17
	queueBytes  = 64 << 20
	eventBatch  = 256 << 10
)

// remote is a service in the other process that subscribes to a subject.
type remote struct {
	sender  *sender
	sub     *remoteService
	subject *local.Subject
}

// Gone reports whether the service has stopped.
func (r remote) Gone() bool { return r.sub.gone.Load() || r.sender.over() }

// Send queues an event for the service.
func (r remote) Send(from *local.Service, event []byte) {
	if !r.sub.gone.Load() {
		r.sender.put(queued{eventHappened, r.subject.Name, r.sub.service, r.sub.epoch, publisherOf(from), event, time.Now().UnixNano()}, false)
	}
}

// subscribe subscribes the services of other processes to the events of this one. The
// caller holds the lock of members.
func (l *senders) subscribe(v *members.View) {
	tables := l.worker.Running()
	for process, o := range l.to {
		if l.members.peers[process] != o.peer {
			delete(l.to, process)
			o.close()
		}
	}
	for process, p := range l.members.peers {
		e := p.Entry.Load()
		receives := func(service string) bool { return v.Parts.Receives(service, e.Partition, v.Mine.Partition) }
		if o := l.to[process]; o != nil {
			o.detach(e, receives)
		}
		for _, s := range e.Services {
			if s.State == members.StateStarting || s.State == members.StateDraining || !receives(s.Name) {
				continue
			}
			for _, name := range s.Subscribes {
				sub, source := tables.Subjects[name], source(tables, name)
				if sub == nil || source.epoch == 0 {
					continue
				}
				o := l.to[process]
				if o == nil {
					o = &sender{senders: l, peer: p, number: uint64(time.Now().UnixNano()), wake: local.NewSignal(), subs: map[string]*remoteService{}}
					l.to[process] = o
					o.start()
				}
				o.attach(sub, s, source)
			}
		}
	}
}

// source returns the run here that publishes a subject; none if its epoch is 0. A
// standby publishes nothing: its run begins when it becomes active.
func source(t *local.Tables, subject string) publisher {
	if s := t.Publisher(subject); s != nil {
		return publisherOf(s)
	}
	return publisher{}
}

// detach removes the services that no longer run in the other process, or that
// must not receive our events any more.
func (o *sender) detach(e *members.Entry, receives func(service string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, at := range o.subs {
		if s := e.Service(name); s == nil || s.Epoch != at.epoch || s.State == members.StateDraining || !receives(name) {
			at.gone.Store(true)
			delete(o.subs, name)
		}
	}
}

// attach subscribes a service in the other process to a subject. If it is subscribed
// already and another run of the publisher has begun here since, it is sent what that has
// retained again: it may have been published before the run began.
func (o *sender) attach(sub *local.Subject, s members.ServiceState, source publisher) {
	o.mu.Lock()
	at := o.subs[s.Name]
	if at == nil || at.epoch != s.Epoch {
		at = &remoteService{service: s.Name, epoch: s.Epoch, runs: map[*local.Subject]uint64{}}
		o.subs[s.Name] = at
	}
	if !slices.Contains(at.subjects, sub) {
		at.subjects = append(at.subjects, sub)
	}
	run := at.runs[sub]
	at.runs[sub] = source.epoch
	o.mu.Unlock()
	sub.AddRemote(remote{o, at, sub}, func(facts []any) { o.sendRetained(sub, at, source, facts) })
	if run != 0 && run != source.epoch {
		sub.Again(func(facts []any) { o.sendRetained(sub, at, source, facts) })
	}
}

// sendRetained queues the retained events of a subject and a mark that they are
// complete.
func (o *sender) sendRetained(sub *local.Subject, at *remoteService, source publisher, facts []any) {
	for _, event := range facts {
		if data, err := weft.Encode(nil, event); err == nil {
			o.put(queued{eventHappened, sub.Name, at.service, at.epoch, source, data, 0}, true)
		}
	}
	o.put(queued{kind: eventComplete, subject: sub.Name, service: at.service, epoch: at.epoch, source: source}, true)
}

// put queues an event.
func (o *sender) put(e queued, must bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return
	}
	if o.lost > 0 && !must {
		o.lost++
		return
	}
	if !must && (len(o.queue) >= queueEvents || o.bytes+len(e.data) > queueBytes) {
		o.lost = uint64(len(o.queue)) + 1
		o.number += uint64(len(o.queue))
		o.queue, o.bytes = nil, 0
		o.senders.log.Warn("process takes no events; what waited for it is dropped; retained events will be sent again", "process", o.peer.Entry.Load().Process)
	} else {
		o.queue = append(o.queue, e)
		o.bytes += len(e.data)
	}
	o.wake.Notify()
}

// start sends until the sender is closed.
func (o *sender) start() {
	ctx, cancel := context.WithCancel(context.Background())
	o.stop = cancel
	go o.run(ctx)
}

func (o *sender) run(ctx context.Context) {
	pauses := backoff.Exponential{First: 5 * time.Millisecond, Last: 200 * time.Millisecond}
	for {
		select {
		case <-o.wake:
		case <-ctx.Done():
			return
		}
		for {
			o.resend(ctx)
			batch, stamp, first, n := o.batch()
			if n == 0 {
				break
			}
			answer, err := o.peer.Send(ctx, members.EventsMethod, stamp, batch)
			if err != nil || len(answer) == 0 || answer[0] != members.AnswerOK {
				if pauses.Wait(ctx) != nil {
					return
				}
				continue
			}
			pauses.Reset()
			o.done(first, n)
		}
	}
}

// resend sends everything anew after a queue was dropped, once the receiver is
// back.
func (o *sender) resend(ctx context.Context) {
	o.mu.Lock()
	lost := o.lost
	subs := map[*remoteService][]*local.Subject{}
	if lost > 0 {
		for _, at := range o.subs {
			subs[at] = slices.Clone(at.subjects)
		}
	}
	o.mu.Unlock()
	if lost == 0 {
		return
	}
	ping, cancel := context.WithTimeout(ctx, o.peer.Patience())
	defer cancel()
	if _, err := o.peer.Request(ping, members.PingMethod, nil); err != nil {
		_ = backoff.Sleep(ctx, members.StallPing)
		o.wake.Notify()
		return
	}
	o.mu.Lock()
	o.lost = 0
	o.mu.Unlock()
	tables := o.senders.worker.Running()
	for at, subjects := range subs {
		for _, sub := range subjects {
			sub.Again(func(facts []any) {
				source := source(tables, sub.Name)
				o.put(queued{kind: eventAnew, subject: sub.Name, service: at.service, epoch: at.epoch, source: source}, true)
				o.sendRetained(sub, at, source, facts)
			})
		}
	}
}

// batch encodes the first events of the queue whose publishers belong to one
// partition; first is the number of the first event.
func (o *sender) batch() (data []byte, s *members.Stamp, first uint64, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return nil, nil, 0, 0
	}
	s = &members.Stamp{Wiring: o.senders.members.links.View.Load().Wiring(), Partition: o.queue[0].source.partition}
	data = binary.LittleEndian.AppendUint64(make([]byte, 0, 1024), o.senders.members.self)
	data = binary.LittleEndian.AppendUint64(data, o.number)
	for _, e := range o.queue {
		if n > 0 && len(data)+len(e.data) > eventBatch || e.source.partition != s.Partition {
			break
		}
		data = append(data, e.kind)
		data = members.AppendBytes(data, []byte(e.subject))
		data = members.AppendBytes(data, []byte(e.service))
		data = binary.LittleEndian.AppendUint64(data, e.epoch)
		data = binary.LittleEndian.AppendUint64(data, e.source.epoch)
		data = members.AppendBytes(data, e.data)
		n++
	}
	return data, s, o.number, n
}

// done removes acknowledged events from the queue, unless the queue was dropped
// meanwhile.
func (o *sender) done(first uint64, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.number != first || len(o.queue) < n {
		return
	}
	o.count(o.queue[:n])
	for _, e := range o.queue[:n] {
		o.bytes -= len(e.data)
	}
	clear(o.queue[:n])
	if o.queue = o.queue[n:]; len(o.queue) == 0 {
		o.queue = nil
	}
	o.number += uint64(n)
}

// count counts events that another process has taken into its queues. That
// process knows when they are handled.
func (o *sender) count(events []queued) {
	now := time.Now().UnixNano()
	var last local.CrossingOf
	var t *local.Tally
	for _, e := range events {
		if e.kind != eventHappened {
			continue
		}
		of := local.CrossingOf{
			From: members.OwnerOf(e.subject), To: e.service, ToProcess: o.peer.Entry.Load().Process,
			Kind: "event", Name: e.subject, Transport: o.peer.TransportOf(members.EventsMethod),
		}
		if of != last {
			t, last = o.senders.worker.Crossings().Of(of), of
		}
		t.Add(1)
		if e.at != 0 {
			t.Took(time.Duration(now-e.at), 1)
		}
	}
}

// over reports whether the other process has ended.
func (o *sender) over() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stopped
}

func (o *sender) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.stopped {
		o.stopped = true
		o.stop()
		o.queue = nil
	}
}

// flush waits, for a short time, until all published events are
// delivered.
func (l *senders) flush(ctx context.Context) {
	l.members.mu.Lock()
	var senders []*sender
	for _, o := range l.to {
		if o.peer.Usable() {
			senders = append(senders, o)
		}
	}
	l.members.mu.Unlock()
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(senders, func(o *sender) bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return len(o.queue) > 0 && o.peer.Usable()
		}) {
			return
		}
	}
}
