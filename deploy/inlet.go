package deploy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// inlets receive the events of other processes: each event once, in the order
// of its publisher.
type inlets struct {
	mu   sync.Mutex
	from map[uint64]*inlet // by incarnation of the publishing process
}

// inlet receives from one run of another process.
type inlet struct {
	mu   sync.Mutex      // one batch at a time
	next uint64          // number of the event expected
	anew map[told]uint64 // what is being sent anew, and the last note before that began
	used time.Time
	// partition is the partition of a process of an earlier build, which does
	// not send it with its events; empty if it works for all, or if it is
	// unknown.
	partition string

	toldMu sync.Mutex
	told   map[told]bool
}

// told is a service that has received the retained events of a subject.
type told struct {
	service string
	epoch   uint64
	subject string
}

func (l *inlets) of(incarnation uint64) *inlet {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from == nil {
		l.from = map[uint64]*inlet{}
	}
	in := l.from[incarnation]
	if in == nil {
		for k, old := range l.from {
			if time.Since(old.used) > time.Hour {
				delete(l.from, k)
			}
		}
		in = &inlet{told: map[told]bool{}, anew: map[told]uint64{}}
		l.from[incarnation] = in
	}
	in.used = time.Now()
	return in
}

// take receives a batch of events; it acknowledges the batch when all events
// are in the inboxes. It refuses a batch from a process that goes by another
// plan.
func (l *inlets) take(n *Node, s *members.Stamp, batch []byte) ([]byte, error) {
	r := members.Cursor{B: batch}
	incarnation, number := r.Uint64(), r.Uint64()
	if r.Err != nil {
		return nil, r.Err
	}
	in := l.of(incarnation)
	in.mu.Lock()
	defer in.mu.Unlock()
	tables, v := n.worker.Running(), n.links.View.Load()
	if !v.Agrees(s) {
		return []byte{members.AnswerNotHere}, nil
	}
	if in.next == 0 {
		in.next = number
	}
	partition := in.partitionOf(n, incarnation, s)
	var last, event any // subscribers of one event share its message
	var lastData []byte
	var key string // key of a retained event
	var retained, noted bool
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
		if !v.Knows(partition) || !v.Parts.Hears(s.Spec.Name, v.Mine.Partition, partition) {
			continue // queued under an earlier plan
		}
		if kind == outAnew {
			in.anew[told{s.Spec.Name, epoch, sub.Name}] = n.facts.now()
			last = nil // so that every event is noted
			continue
		}
		if kind == outTold {
			if since, ok := in.anew[told{s.Spec.Name, epoch, sub.Name}]; ok {
				delete(in.anew, told{s.Spec.Name, epoch, sub.Name})
				n.facts.outdate(sub, publisher{source, partition}, since)
			}
			in.toldMu.Lock()
			maps.DeleteFunc(in.told, func(k told, _ bool) bool { return k.service == s.Spec.Name && k.epoch != epoch })
			in.told[told{s.Spec.Name, epoch, sub.Name}] = true
			in.toldMu.Unlock()
			continue
		}
		at := s.Subscriptions[sub.Name]
		if at == nil {
			continue
		}
		if last != sub || string(lastData) != string(data) {
			event = sub.Decl.NewMessage()
			if err := weft.Decode(data, event); err != nil {
				n.log.Error("event dropped: it cannot be decoded", "subject", sub.Name, "error", err)
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
			n.facts.note(sub, key, event, publisher{source, partition})
		}
		at.Put(event)
	}
	return []byte{members.AnswerOK}, nil
}

// partitionOf returns the partition of the services that published a batch.
func (in *inlet) partitionOf(n *Node, incarnation uint64, s *members.Stamp) string {
	if s != nil {
		return s.Partition
	}
	if known, ok := n.partitionOf(incarnation); ok {
		in.partition = known
	}
	return in.partition
}

// await waits, for a starting service, until all running publishers have sent
// it their retained events, and until it has handled them.
func (l *inlets) await(ctx context.Context, n *Node, s *local.Service) {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	for !l.complete(n, s) {
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.Canceled) {
				n.log.Warn("service begins without having been told all that others know; it will be told later", "service", s.Spec.Name)
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
func (l *inlets) complete(n *Node, s *local.Service) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.links.View.Load()
	for _, sub := range s.Spec.Subscribes {
		publisher := members.OwnerOf(sub.SubjectName())
		for _, t := range v.Speakers(s.Spec.Name, publisher) {
			if t.Peer == nil || t.State != members.StateReady && t.State != members.StateSyncing || !t.Peer.Usable() {
				continue
			}
			in := l.of(t.Peer.Entry.Load().Incarnation)
			in.toldMu.Lock()
			ok := in.told[told{s.Spec.Name, s.Epoch.Load(), sub.SubjectName()}]
			in.toldMu.Unlock()
			if !ok {
				return false
			}
		}
	}
	return true
}

// facts records which run of a publisher sent each fact last. What a new run
// does not send again is withdrawn: a switch that did not reconnect, a link
// that was lost meanwhile.
type facts struct {
	n *Node

	mu    sync.Mutex
	known map[*local.Subject]map[string]noted
	count uint64                   // of notes
	swept map[members.RunOf]uint64 // epoch of the last run after a sweep, by service and partition
}

type noted struct {
	event  any
	source publisher
	number uint64 // of the note
}

// publisher is one run of a publishing service. Several run at once if they
// belong to different partitions; each publishes about its own switches only.
type publisher struct {
	epoch     uint64
	partition string // empty: it works for all
}

// publisherOf returns the run that publishes a service's events.
func publisherOf(s *local.Service) publisher { return publisher{s.Epoch.Load(), s.Partition()} }

// note records a fact.
func (f *facts) note(sub *local.Subject, key string, event any, source publisher) {
	if sub.Decl.WithdrawnBy(event) == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[*local.Subject]map[string]noted{}
	}
	m := f.known[sub]
	if m == nil {
		m = map[string]noted{}
		f.known[sub] = m
	}
	if sub.Decl.GoneBy(event) {
		if m[key].source.partition == source.partition || !f.n.links.View.Load().Disowned(sub, key, event, source.partition) { // else another partition owns it by now
			delete(m, key)
		}
		return
	}
	f.count++
	m[key] = noted{event, source, f.count}
	of := members.RunOf{Service: members.OwnerOf(sub.Name), Partition: source.partition}
	if epoch := f.swept[of]; source.epoch < epoch { // it came late
		delete(f.swept, of)
		time.AfterFunc(f.n.withdrawAfter, func() { f.sweep(of.Service, publisher{epoch, of.Partition}) })
	}
}

// published schedules a sweep if an entry shows a new run of a publisher.
func (f *facts) published(old, new *members.Entry) {
	if new == nil || !f.n.listening(new.Partition) {
		return
	}
	for _, s := range new.Services {
		if s.State != members.StateReady {
			continue
		}
		if old != nil {
			if before := old.Service(s.Name); before != nil && before.Epoch == s.Epoch && before.State == members.StateReady {
				continue
			}
		}
		time.AfterFunc(f.n.withdrawAfter, func() { f.sweep(s.Name, publisher{s.Epoch, new.Partition}) })
	}
}

// sweep withdraws the facts that earlier runs of a publisher sent and the given
// run did not: the facts of its partition, and of partitions that do not run
// the service any more.
func (f *facts) sweep(service string, run publisher) {
	alive := f.n.alive(service)
	current := f.n.links.View.Load().Current
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.swept == nil {
		f.swept = map[members.RunOf]uint64{}
	}
	of := members.RunOf{Service: service, Partition: run.partition}
	f.swept[of] = max(f.swept[of], run.epoch)
	for sub, m := range f.known {
		if members.OwnerOf(sub.Name) != service {
			continue
		}
		for key, fact := range m {
			other := fact.source.partition != run.partition && current != nil && slices.ContainsFunc(current.InForce().Instances(), func(i plan.Instance) bool {
				return i.Partition == fact.source.partition && slices.Contains(i.Services, service)
			})
			if !other && fact.source.epoch < run.epoch && !alive[fact.source.epoch] {
				f.withdraw(sub, key)
			}
		}
	}
}

// now returns the number of the last note.
func (f *facts) now() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// outdate withdraws the facts that a publisher sent up to a note, because it
// has sent everything it knows since then.
func (f *facts) outdate(sub *local.Subject, source publisher, since uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, fact := range f.known[sub] {
		if fact.source == source && fact.number <= since {
			f.withdraw(sub, key)
		}
	}
}

// withdraw withdraws a fact. The caller holds the lock, so that later events
// about it come behind.
func (f *facts) withdraw(sub *local.Subject, key string) {
	last := f.known[sub][key]
	event := sub.Decl.WithdrawnBy(last.event)
	delete(f.known[sub], key)
	v := f.n.links.View.Load()
	for _, at := range sub.All() {
		if !v.Parts.Hears(at.Service.Spec.Name, v.Mine.Partition, last.source.partition) {
			continue
		}
		at.PutNow(event)
	}
}

// partitionOf returns the partition of a run of a process; false if it is
// unknown.
func (n *Node) partitionOf(incarnation uint64) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.entries {
		if e.Incarnation == incarnation {
			return e.Partition, true
		}
	}
	return "", false
}

// alive returns the epochs of all runs of a service that have not died.
func (n *Node) alive(service string) map[uint64]bool {
	n.mu.Lock()
	entries, peers, over := maps.Clone(n.entries), maps.Clone(n.peers), n.links.View.Load().Superseded
	n.mu.Unlock()
	epochs := map[uint64]bool{}
	for process, e := range entries {
		s := e.Service(service)
		if s == nil || s.State == members.StateStandby || over[members.RunOf{Service: service, Partition: e.Partition, Epoch: s.Epoch}] {
			continue
		}
		if p := peers[process]; p == nil || !p.Dead(context.Background()) {
			epochs[s.Epoch] = true
		}
	}
	return epochs
}

// listening reports whether any service of this process receives the events
// published in a process of a partition.
func (n *Node) listening(told string) bool {
	v := n.links.View.Load()
	return slices.ContainsFunc(n.worker.Running().Services, func(s *local.Service) bool {
		return v.Parts.Hears(s.Spec.Name, v.Mine.Partition, told)
	})
}
