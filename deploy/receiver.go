package deploy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
)

// syncPatience is how long a starting service waits for what publishers retain.
const syncPatience = 3 * time.Second

// receivers receive the events of other processes: each event once, in the order
// of its publisher.
type receivers struct {
	members *membership
	worker  *local.Worker
	facts   *facts
	log     *slog.Logger

	mu   sync.Mutex           // guards what follows
	from map[uint64]*receiver // by incarnation of the publishing process
}

// receiver receives from one run of another process.
type receiver struct {
	mu   sync.Mutex            // one batch at a time
	next uint64                // number of the event expected
	anew map[subscriber]uint64 // what is being sent anew, and the last note before that began
	used time.Time
	// partition is the partition of a process of an earlier build, which does
	// not send it with its events; empty if it works for all, or if it is
	// unknown.
	partition string
	process   string // the name of the process, once it is known

	completeMu sync.Mutex
	complete   map[subscriber]bool // those that have all retained events
}

// subscriber is one run of a service that subscribes to a subject.
type subscriber struct {
	service string
	epoch   uint64
	subject string
}

func (l *receivers) of(incarnation uint64) *receiver {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.from[incarnation]
	if in == nil {
		for k, old := range l.from {
			if time.Since(old.used) > time.Hour {
				delete(l.from, k)
			}
		}
		in = &receiver{complete: map[subscriber]bool{}, anew: map[subscriber]uint64{}}
		l.from[incarnation] = in
	}
	in.used = time.Now()
	return in
}

// take receives a batch of events; it acknowledges the batch when all events
// are in the inboxes. It refuses a batch from a process that goes by another
// plan.
func (l *receivers) take(s *members.Stamp, batch []byte) ([]byte, error) {
	r := members.Cursor{B: batch}
	incarnation, number := r.Uint64(), r.Uint64()
	if r.Err != nil {
		return nil, r.Err
	}
	in := l.of(incarnation)
	in.mu.Lock()
	defer in.mu.Unlock()
	tables, v := l.worker.Running(), l.members.links.View.Load()
	if !v.Agrees(s) {
		return []byte{members.AnswerNotHere}, nil
	}
	if in.next == 0 {
		in.next = number
	}
	partition := in.partitionOf(l.members, incarnation, s)
	stamped := s != nil // else the partition may be unknown
	var last, event any // subscribers of one event share its message
	var lastData []byte
	var key string // key of a retained event
	var retained, noted, late bool
	arrived := eventArrivals{worker: l.worker, from: in.processOf(l.members, incarnation), at: time.Now().UnixNano()}
	for ; len(r.B) > 0; number++ {
		kind, subject, service := r.Uint8(), r.Bytes(), r.Bytes()
		epoch, source, data := r.Uint64(), r.Uint64(), r.Bytes()
		if r.Err != nil {
			return nil, r.Err
		}
		if number < in.next {
			continue // a duplicate
		}
		in.next = number + 1
		if v.Superseded[members.RunOf{Service: members.OwnerOf(string(subject)), Partition: partition, Epoch: source}] {
			continue // late: another run has replaced the publisher
		}
		sub := tables.Subjects[string(subject)]
		s := tables.Service(string(service))
		if sub == nil || s == nil || s.Epoch.Load() != epoch {
			continue // no subscriber, or a subject unknown to this build
		}
		if stamped && !v.Has(members.OwnerOf(string(subject)), partition) || !v.Parts.Receives(s.Spec.Name, v.Mine.Partition, partition) {
			continue // queued under an earlier plan
		}
		if kind == eventAnew {
			in.anew[subscriber{s.Spec.Name, epoch, sub.Name}] = l.facts.now()
			last = nil // so that every event is noted
			continue
		}
		if kind == eventComplete {
			if since, ok := in.anew[subscriber{s.Spec.Name, epoch, sub.Name}]; ok {
				delete(in.anew, subscriber{s.Spec.Name, epoch, sub.Name})
				l.facts.withdrawOlder(sub, publisher{source, partition}, since)
			}
			in.completeMu.Lock()
			maps.DeleteFunc(in.complete, func(k subscriber, _ bool) bool { return k.service == s.Spec.Name && k.epoch != epoch })
			in.complete[subscriber{s.Spec.Name, epoch, sub.Name}] = true
			in.completeMu.Unlock()
			if at := s.Subscriptions[sub.Name]; at != nil {
				at.Complete(publisher{source, partition}.source())
			}
			continue
		}
		at := s.Subscriptions[sub.Name]
		if at == nil {
			continue
		}
		if last != sub || string(lastData) != string(data) {
			event = sub.Decl.NewMessage()
			if err := weft.Decode(data, event); err != nil {
				l.log.Error("event dropped: it cannot be decoded", "subject", sub.Name, "error", err)
				continue
			}
			last, lastData, noted = sub, data, false
			key, retained = sub.Decl.KeyOf(event)
		}
		if retained && v.Stray(s.Spec.Name, sub, key, event, partition) {
			continue
		}
		if retained && !noted {
			noted = true
			if late = l.facts.isOutdated(sub, key, event, publisher{source, partition}); !late {
				l.facts.note(sub, key, event, publisher{source, partition})
			}
		}
		if retained && late {
			continue
		}
		at.Take(event, publisher{source, partition}.source(), arrived.of(s.Spec.Name, sub.Name), arrived.at)
	}
	return []byte{members.AnswerOK}, nil
}

// processOf returns the name of the process that a receiver receives from;
// empty as long as the directory does not have it.
func (in *receiver) processOf(m *membership, incarnation uint64) string {
	if in.process == "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, e := range m.entries {
			if e.Incarnation == incarnation {
				in.process = e.Process
			}
		}
	}
	return in.process
}

// partitionOf returns the partition of the services that published a batch.
func (in *receiver) partitionOf(m *membership, incarnation uint64, s *members.Stamp) string {
	if s != nil {
		return s.Partition
	}
	if known, ok := m.partitionOf(incarnation); ok {
		in.partition = known
	}
	return in.partition
}

// await waits, for a starting service, until all running publishers have sent
// it their retained events, and until it has handled them.
func (l *receivers) await(ctx context.Context, s *local.Service) {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	for !l.complete(s) {
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.Canceled) {
				l.log.Warn("service begins before it has all retained events; the rest will follow", "service", s.Spec.Name)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
	for s.Pending() > 0 && ctx.Err() == nil {
		time.Sleep(100 * time.Microsecond)
	}
}

// complete reports whether all publishers in other processes have sent the
// service their retained events.
func (l *receivers) complete(s *local.Service) bool {
	l.members.mu.Lock()
	defer l.members.mu.Unlock()
	v := l.members.links.View.Load()
	for _, sub := range s.Spec.Wants() {
		publisher := members.OwnerOf(sub.SubjectName())
		for _, t := range v.Publishers(s.Spec.Name, publisher) {
			if t.Peer == nil || t.State != members.StateReady && t.State != members.StateSyncing || !t.Peer.Usable() {
				continue
			}
			in := l.of(t.Peer.Entry.Load().Incarnation)
			in.completeMu.Lock()
			ok := in.complete[subscriber{s.Spec.Name, s.Epoch.Load(), sub.SubjectName()}]
			in.completeMu.Unlock()
			if !ok {
				return false
			}
		}
	}
	return true
}

// eventArrivals counts the events of one batch of another process.
type eventArrivals struct {
	worker *local.Worker
	from   string // the process
	at     int64
	last   local.CrossingOf
	t      *local.Tally
}

// of returns the tally of a subject's events for a service.
func (a *eventArrivals) of(service, subject string) *local.Tally {
	if a.from == "" {
		return nil
	}
	of := local.CrossingOf{From: members.OwnerOf(subject), FromProcess: a.from, To: service, Kind: "event", Name: subject}
	if of != a.last {
		a.t, a.last = a.worker.Crossings().Of(of), of
	}
	return a.t
}
