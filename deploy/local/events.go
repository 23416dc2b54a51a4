package local

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/plan"
)

// Subject is one kind of event in this process, with its local subscribers and,
// if the publisher runs here, the retained events.
type Subject struct {
	Name string
	Decl weft.Subject

	subscribers atomic.Pointer[[]*subscription] // replaced under mu, never written to

	mu       sync.Mutex                 // guards what follows, and order of publication
	retained map[string]map[string]fact // by the first part of the key, and by the key
	count    uint64                     // of facts
	remotes  []Remote                   // the subscriptions of other processes
}

// Remote is a service in another process that subscribes to a subject.
type Remote interface {
	// Send queues an event, encoded, for the service.
	Send(from *Service, event []byte)
	// Gone reports whether the service has stopped.
	Gone() bool
}

// fact is the last event about one thing.
type fact struct {
	number uint64 // facts are sent in the order of their last change
	event  any
}

// subscription is a service's subscription to a subject. The handler is set
// before the service is ready, and is read after all services are.
type subscription struct {
	subject *Subject
	Service *Service
	handler func(context.Context, any)
	here    *Tally    // of the events of this process; nil for those that no service publishes
	base    *nib.Base // that the events are for; nil: they are for the handler
}

// newSubscription returns a service's subscription to a subject.
func newSubscription(to *Subject, s *Service) *subscription {
	publisher, _, _ := strings.Cut(to.Name, ".")
	return &subscription{subject: to, Service: s, here: s.worker.crossings.held(CrossingOf{
		From: publisher, To: s.Spec.Name, Kind: sentEvent, Name: to.Name, Transport: plan.Inproc,
	})}
}

// sourceOf returns the run by which a service publishes.
func sourceOf(s *Service) nib.Source {
	return nib.Source{Partition: s.Partition(), Epoch: s.Epoch.Load()}
}

// subject returns the subject of a declaration, made if it is new.
func (t *Tables) subject(decl weft.Subject) *Subject {
	s := t.Subjects[decl.SubjectName()]
	if s == nil {
		s = &Subject{Name: decl.SubjectName(), Decl: decl, retained: map[string]map[string]fact{}}
		s.subscribers.Store(&[]*subscription{})
		t.Subjects[s.Name] = s
	}
	return s
}

// attach adds a subscription and queues the retained events for it, which
// publisher has published if there is one here; or applies them to the
// subscription's base, if it is the first of its part.
func (s *Subject) attach(sub *subscription, publisher *Service, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append(slices.Clone(s.All()), sub)
	s.subscribers.Store(&list)
	if sub.base == nil {
		for _, event := range s.facts() {
			sub.PutNow(event)
		}
		return
	}
	if !first || publisher == nil {
		return // the base has them
	}
	for _, event := range s.facts() {
		sub.base.Apply(sourceOf(publisher), event)
	}
	sub.Complete(sourceOf(publisher))
}

func (s *Subject) detach(sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(s.All()), func(other *subscription) bool { return other == sub })
	s.subscribers.Store(&list)
}

// All returns the subscriptions of this process.
func (s *Subject) All() []*subscription { return *s.subscribers.Load() }

// facts returns the retained events. The caller holds the lock.
func (s *Subject) facts() []any {
	var list []fact
	for _, part := range s.retained {
		for _, f := range part {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b fact) int { return cmp.Compare(a.number, b.number) })
	events := make([]any, len(list))
	for i := range list {
		events[i] = list[i].event
	}
	return events
}

// AddRemote adds a subscriber in another process, unless it is there, and calls
// tell with the retained events while nothing is published.
func (s *Subject) AddRemote(r Remote, tell func(facts []any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.remotes, r) {
		return
	}
	s.remotes = append(slices.DeleteFunc(s.remotes, Remote.Gone), r)
	tell(s.facts())
}

// Again calls tell with the retained events while nothing is published.
func (s *Subject) Again(tell func(facts []any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tell(s.facts())
}

// adopt says to the bases of the network that what is retained is of the run of its
// publisher which begins now.
func (s *Subject) adopt(publisher *Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, event := range s.facts() {
		key, _ := s.Decl.KeyOf(event)
		var fed *nib.Base
		for _, at := range s.All() {
			if at.base == nil || at.base == fed || at.Service == publisher || publisher.worker.cluster.Stray(at.Service, publisher, s, key, event) {
				continue
			}
			fed = at.base
			at.base.Apply(sourceOf(publisher), event)
		}
	}
}

// retain keeps an event that describes the state of something. The caller holds
// the lock.
func (s *Subject) retain(key string, event any) {
	first, _, _ := strings.Cut(key, "/")
	part := s.retained[first]
	if s.Decl.GoneBy(event) {
		if delete(part, key); len(part) == 0 {
			delete(s.retained, first)
		}
		return
	}
	if part == nil {
		part = map[string]fact{}
		s.retained[first] = part
	}
	s.count++
	part[key] = fact{s.count, event}
}

// drop removes the facts whose keys have the given first part.
func (s *Subject) drop(first string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.retained, first)
}

// Forget drops all retained events, because the publisher has gone.
func (s *Subject) Forget() {
	s.mu.Lock()
	clear(s.retained)
	s.mu.Unlock()
}

// subscriptionOf returns a service's subscription; nil if it has none.
func (s *Subject) subscriptionOf(sv *Service) *subscription {
	for _, sub := range s.All() {
		if sub.Service == sv {
			return sub
		}
	}
	return nil
}

// Publish sends an event to all subscribers: by pointer or encoded here, and to
// those in other processes. Events of a service that is stopping are dropped: a
// service that releases something on its way out does not mean that it is gone.
func (s *Service) Publish(decl weft.Subject, event any) {
	if s.Context.Err() != nil {
		return
	}
	sub := s.worker.tables.Load().Subjects[decl.SubjectName()]
	if sub == nil {
		return
	}
	measured := false
	if n := s.sent.events[decl.SubjectName()]; n != nil {
		measured = chosen(n.Add(1))
	}
	key, retained := decl.KeyOf(event)
	if retained {
		// One after the other, so that a subscriber that attaches meanwhile
		// receives each event once.
		sub.mu.Lock()
		defer sub.mu.Unlock()
		sub.retain(key, event)
		if renewed := s.worker.tables.Load().Subjects[decl.Renewed()]; renewed != nil {
			renewed.drop(key)
		}
	}
	var now int64
	var fed *nib.Base // which has the event already
	for _, at := range sub.All() {
		if at.Service == s {
			continue // a replica does not receive its own events
		}
		if retained && s.worker.cluster.Stray(at.Service, s, sub, key, event) {
			continue
		}
		if s.worker.wire != nil {
			s.publishEncoded(at, event)
			continue
		}
		if now == 0 && (measured || !at.here.sparse.Load()) {
			now = time.Now().UnixNano()
		}
		if at.base != nil && at.base == fed {
			at.applied(at.here, now)
			continue
		}
		fed = at.base
		at.Take(event, sourceOf(s), at.here, now)
	}
	if retained {
		s.worker.cluster.Note(s, sub, key, event)
	} else {
		sub.mu.Lock()
		defer sub.mu.Unlock()
	}
	if len(sub.remotes) == 0 {
		return
	}
	data, err := weft.Encode([]byte{}, event)
	if err != nil {
		s.Log.Error("event cannot be encoded", "subject", sub.Name, "error", err)
		return
	}
	for _, r := range sub.remotes {
		r.Send(s, data)
	}
}

// Put queues an event; it waits for room. The tally counts it when it has been
// handled, and takes the time since it was published, unless that is 0.
func (at *subscription) Put(event any, t *Tally, published int64) {
	at.Service.inbox.announce()
	at.Service.enqueue(delivery{at, event, t, published})
}

// PutNow queues an event whether or not there is room.
func (at *subscription) PutNow(event any) {
	at.Service.inbox.announce()
	at.Service.inbox.putNow(delivery{to: at, event: event, tally: at.here})
}

// Take brings an event to where it is wanted: to the base of the network if the
// service reads that, else to its handler. It waits for room.
func (at *subscription) Take(event any, from nib.Source, t *Tally, published int64) {
	if at.base == nil {
		at.Put(event, t, published)
		return
	}
	at.base.Apply(from, event)
	at.applied(t, published)
}

// applied counts an event that is in the base.
func (at *subscription) applied(t *Tally, published int64) {
	d := delivery{tally: t, published: published}
	d.counted()
}

// takeEncoded takes an event that has crossed the wire, of a publisher here.
func (at *subscription) takeEncoded(event any) {
	from := at.Service.worker.tables.Load().Publisher(at.subject.Name)
	if at.base == nil || from == nil {
		at.Service.enqueue(delivery{at, event, at.here, time.Now().UnixNano()})
		return
	}
	at.base.Apply(sourceOf(from), event)
	at.applied(at.here, 0)
	at.Service.inbox.retract()
}

// TakeBack is Take of an event that withdraws what a run has published. It does not
// wait.
func (at *subscription) TakeBack(event any, from nib.Source) {
	if at.base == nil {
		at.PutNow(event)
		return
	}
	at.base.Apply(from, event)
}

// Complete says that all has come that a run of a publisher retained.
func (at *subscription) Complete(from nib.Source) {
	if at.base != nil {
		at.base.Complete(nib.PartOf(at.subject.Name), from)
	}
}

// notifier returns a function that has another called as an event of a service. It
// does not wait.
func notifier(s *Service, subject string, handle func()) func() {
	at := &subscription{subject: &Subject{Name: subject}, Service: s, handler: func(context.Context, any) { handle() }}
	return func() { at.PutNow(nil) }
}

// enqueue puts an announced event into the service's inbox.
func (s *Service) enqueue(d delivery) {
	s.inbox.put(d, func() {
		s.slow.Add(1)
		s.Log.Warn("publisher has waited for a second: the queue of events is full",
			"subject", d.to.subject.Name, "queue", queueBound)
	})
}

// deliver handles the service's events one after the other until its inbox is
// closed.
func (s *Service) deliver() {
	select {
	case <-s.Group.started:
	case <-s.Context.Done():
		return
	}
	var events [inboxBatch]delivery
	for {
		n := s.inbox.take(&events)
		if n == 0 {
			return
		}
		for i := range n {
			if s.Context.Err() == nil {
				s.handle(&events[i])
			}
			events[i] = delivery{}
			s.inbox.handled()
		}
	}
}

// handle runs the handler of an event; it logs and counts a panic.
func (s *Service) handle(d *delivery) {
	defer func() {
		if p := recover(); p != nil {
			_ = s.panicked("the handler of "+d.to.subject.Name, p) // logs it; an event has no caller
		}
	}()
	d.to.handler(s.Context, d.event)
	d.counted()
}
