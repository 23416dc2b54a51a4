package deploy

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan"
)

// inlets take the events of other processes: each once, in the order of each
// publisher.
type inlets struct {
	mu   sync.Mutex
	from map[uint64]*inlet // by incarnation of the publishing process
}

// inlet is what has come from one run of another process.
type inlet struct {
	mu   sync.Mutex      // one batch at a time
	next uint64          // number of the event expected
	anew map[told]uint64 // what is being told anew, since which fact
	used time.Time
	// partition is that of a process of an earlier build, which does not say it
	// with its events; empty if it works for all, or is not known.
	partition string

	toldMu sync.Mutex
	told   map[told]bool
}

// told is a service that has been told what was retained of a subject.
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

var errMalformed = errors.New("malformed batch")

// take takes a batch of events: it is acknowledged when all are in the inboxes.
// One of a process that goes by another plan is not taken.
func (l *inlets) take(n *Node, s *stamp, batch []byte) ([]byte, error) {
	r := cursor{b: batch}
	incarnation, number := r.uint64(), r.uint64()
	if r.err != nil {
		return nil, r.err
	}
	in := l.of(incarnation)
	in.mu.Lock()
	defer in.mu.Unlock()
	tables, v := n.worker.tables.Load(), n.view.Load()
	if !v.agrees(s) {
		return []byte{answerNotHere}, nil
	}
	if in.next == 0 {
		in.next = number
	}
	partition := in.partitionOf(n, incarnation, s)
	var last, event any // services that want the same event get the same message
	var lastData []byte
	var key string // of the thing that the event is about, if it is retained
	var retained, noted bool
	for ; len(r.b) > 0; number++ {
		kind, subject, service := r.uint8(), r.bytes(), r.bytes()
		epoch, source, data := r.uint64(), r.uint64(), r.bytes()
		if r.err != nil {
			return nil, r.err
		}
		if number < in.next {
			continue // it has come before
		}
		in.next = number + 1
		if v.over[runOf{publisherOf(string(subject)), partition, source}] {
			continue // another run has taken its place: what it says is late
		}
		sub := tables.subjects[string(subject)]
		s := tables.service(string(service))
		if sub == nil || s == nil || s.epoch.Load() != epoch {
			continue // nobody wants it any more, or this build does not know it
		}
		if !v.knows(partition) || !v.parts.hears(s.spec.Name, v.mine.Partition, partition) {
			continue // it was queued under an earlier plan
		}
		if kind == outAnew {
			in.anew[told{s.spec.Name, epoch, sub.name}] = n.facts.now()
			last = nil // so that all is noted
			continue
		}
		if kind == outTold {
			if since, ok := in.anew[told{s.spec.Name, epoch, sub.name}]; ok {
				delete(in.anew, told{s.spec.Name, epoch, sub.name})
				n.facts.outdate(sub, publisher{source, partition}, since)
			}
			in.toldMu.Lock()
			maps.DeleteFunc(in.told, func(k told, _ bool) bool { return k.service == s.spec.Name && k.epoch != epoch })
			in.told[told{s.spec.Name, epoch, sub.name}] = true
			in.toldMu.Unlock()
			continue
		}
		at := s.subscriptions[sub.name]
		if at == nil {
			continue
		}
		if last != sub || string(lastData) != string(data) {
			event = sub.decl.NewMessage()
			if err := weft.Decode(data, event); err != nil {
				n.log.Error("event dropped: it cannot be decoded", "subject", sub.name, "error", err)
				continue
			}
			last, lastData, noted = sub, data, false
			key, retained = sub.decl.KeyOf(event)
		}
		if retained && v.stray(s.spec.Name, sub, key, event, partition) {
			continue
		}
		if retained && !noted {
			noted = true
			n.facts.note(sub, key, event, publisher{source, partition})
		}
		s.inbox.announce()
		s.enqueue(delivery{at, event})
	}
	return []byte{answerOK}, nil
}

// partitionOf returns the partition of the services whose events a batch has.
func (in *inlet) partitionOf(n *Node, incarnation uint64, s *stamp) string {
	if s != nil {
		return s.partition
	}
	if known, ok := n.partitionOf(incarnation); ok {
		in.partition = known
	}
	return in.partition
}

// await waits, for a starting service, until all publishers that run have told
// it what they retain, and until it has taken note.
func (l *inlets) await(ctx context.Context, n *Node, s *service) {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	for !l.complete(n, s) {
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.Canceled) {
				n.log.Warn("service begins without having been told all that others know; it will be told later", "service", s.spec.Name)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
	for s.inbox.pending.Load() > 0 && ctx.Err() == nil {
		time.Sleep(100 * time.Microsecond)
	}
}

// complete reports whether all publishers in other processes have told the
// service what they retain.
func (l *inlets) complete(n *Node, s *service) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.view.Load()
	for _, sub := range s.spec.Subscribes {
		publisher := publisherOf(sub.SubjectName())
		for _, t := range v.speakers(s.spec.Name, publisher) {
			if t.peer == nil || t.state != StateReady && t.state != StateSyncing || !t.peer.usable() {
				continue
			}
			in := l.of(t.peer.entry.Load().Incarnation)
			in.toldMu.Lock()
			ok := in.told[told{s.spec.Name, s.epoch.Load(), sub.SubjectName()}]
			in.toldMu.Unlock()
			if !ok {
				return false
			}
		}
	}
	return true
}

// facts remembers which run of its publisher has told a fact last, so that what
// a new run does not tell again is taken back: a switch that has not come back,
// a link that was lost meanwhile.
type facts struct {
	n *Node

	mu    sync.Mutex
	known map[*subject]map[string]noted
	count uint64           // of notes
	swept map[runOf]uint64 // epoch of the last run that was swept for, by service and partition
}

type noted struct {
	event  any
	source publisher
	number uint64 // of the note
}

// publisher is one run of a service that publishes: several run at once if they
// are of different partitions, and each speaks of its own switches only.
type publisher struct {
	epoch     uint64
	partition string // empty: it works for all
}

// note remembers a fact.
func (f *facts) note(sub *subject, key string, event any, source publisher) {
	if sub.decl.WithdrawnBy(event) == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[*subject]map[string]noted{}
	}
	m := f.known[sub]
	if m == nil {
		m = map[string]noted{}
		f.known[sub] = m
	}
	if sub.decl.GoneBy(event) {
		if m[key].source.partition == source.partition || !f.n.view.Load().disowned(sub, key, event, source.partition) { // else it is another's by now
			delete(m, key)
		}
		return
	}
	f.count++
	m[key] = noted{event, source, f.count}
	of := runOf{service: publisherOf(sub.name), partition: source.partition}
	if epoch := f.swept[of]; source.epoch < epoch { // it has come late
		delete(f.swept, of)
		time.AfterFunc(f.n.withdrawAfter, func() { f.sweep(of.service, publisher{epoch, of.partition}) })
	}
}

// published sees whether an entry shows a publisher that has begun anew.
func (f *facts) published(old, new *Entry) {
	if new == nil || !f.n.listening(new.Partition) {
		return
	}
	for _, s := range new.Services {
		if s.State != StateReady {
			continue
		}
		if old != nil {
			if before := old.service(s.Name); before != nil && before.Epoch == s.Epoch && before.State == StateReady {
				continue
			}
		}
		time.AfterFunc(f.n.withdrawAfter, func() { f.sweep(s.Name, publisher{s.Epoch, new.Partition}) })
	}
}

// sweep takes back what earlier runs of a publisher have told and the given one
// has not: those of its partition, and those of partitions that have none of
// their own any more.
func (f *facts) sweep(service string, run publisher) {
	alive := f.n.alive(service)
	current := f.n.view.Load().current
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.swept == nil {
		f.swept = map[runOf]uint64{}
	}
	of := runOf{service: service, partition: run.partition}
	f.swept[of] = max(f.swept[of], run.epoch)
	for sub, m := range f.known {
		if publisherOf(sub.name) != service {
			continue
		}
		for key, fact := range m {
			other := fact.source.partition != run.partition && current != nil && slices.ContainsFunc(current.plan.Instances(), func(i plan.Instance) bool {
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

// outdate takes back what a publisher told up to a note, for it has told all
// that it knows since.
func (f *facts) outdate(sub *subject, source publisher, since uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, fact := range f.known[sub] {
		if fact.source == source && fact.number <= since {
			f.withdraw(sub, key)
		}
	}
}

// withdraw takes a fact back; it is called with the lock, so that what is told
// of it meanwhile comes behind.
func (f *facts) withdraw(sub *subject, key string) {
	last := f.known[sub][key]
	event := sub.decl.WithdrawnBy(last.event)
	delete(f.known[sub], key)
	v := f.n.view.Load()
	for _, at := range *sub.subscribers.Load() {
		if !v.parts.hears(at.service.spec.Name, v.mine.Partition, last.source.partition) {
			continue
		}
		at.service.inbox.announce()
		at.service.inbox.putNow(delivery{at, event})
	}
}

// partitionOf returns the partition of a run of a process, false if it is not
// known.
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
	entries, peers, over := maps.Clone(n.entries), maps.Clone(n.peers), n.view.Load().over
	n.mu.Unlock()
	epochs := map[uint64]bool{}
	for process, e := range entries {
		s := e.service(service)
		if s == nil || s.State == StateStandby || over[runOf{service, e.Partition, s.Epoch}] {
			continue
		}
		if p := peers[process]; p == nil || !p.dead(context.Background()) {
			epochs[s.Epoch] = true
		}
	}
	return epochs
}

// publisherOf returns the service that publishes a subject.
func publisherOf(subject string) string {
	for i := range subject {
		if subject[i] == '.' {
			return subject[:i]
		}
	}
	return subject
}

// cursor reads what appendBytes and its like have written.
type cursor struct {
	b   []byte
	err error
}

func (r *cursor) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.err = nil, api.Errorf(codes.InvalidArgument, "%w", errMalformed)
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *cursor) uint8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *cursor) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *cursor) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *cursor) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *cursor) bytes() []byte {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.b, r.err = nil, api.Errorf(codes.InvalidArgument, "%w", errMalformed)
		return nil
	}
	r.b = r.b[size:]
	return r.take(n)
}

// strings reads a list of names.
func (r *cursor) strings() []string {
	n := int(r.uint8())
	list := make([]string, 0, n)
	for range n {
		list = append(list, string(r.bytes()))
	}
	return slices.Clip(list)
}
