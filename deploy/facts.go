package deploy

import (
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/plan"
)

// withdrawLate is how long a restarted publisher has to send its facts again.
const withdrawLate = 10 * time.Second

// facts records which run of a publisher sent each fact last. What a new run
// does not send again is withdrawn: a switch that did not reconnect, a link
// that was lost meanwhile.
type facts struct {
	members *membership
	worker  *local.Worker
	specs   []weft.Spec
	// withdrawAfter is how long a restarted publisher has to send its facts again.
	withdrawAfter time.Duration

	mu    sync.Mutex // guards what follows
	known map[*local.Subject]map[string]noted
	count uint64                   // of notes
	swept map[members.RunOf]uint64 // epoch of the last run after a sweep, by service and partition
	heard map[members.RunOf]epochs // of lasting facts, by service and partition
}

func newFacts(m *membership, w *local.Worker, specs []weft.Spec) *facts {
	return &facts{
		members: m, worker: w, specs: specs, withdrawAfter: withdrawLate, known: map[*local.Subject]map[string]noted{},
		swept: map[members.RunOf]uint64{}, heard: map[members.RunOf]epochs{},
	}
}

// epochs are those of the first run and of the last one of which something was
// heard.
type epochs struct{ first, last uint64 }

type noted struct {
	event  any // nil: the fact is lasting
	source publisher
	number uint64 // of the note
	gone   bool   // the event says that the thing is no more
	later  *noted // what a later run had said of it when this one, which still ran, spoke
}

// after returns a note with what later runs have said before, by the note that it replaces.
func (n noted) after(was noted) noted {
	for x := &was; x != nil; x = x.later {
		if x.event != nil && x.source.partition == n.source.partition && x.source.epoch > n.source.epoch {
			n.later = x
			break
		}
	}
	return n
}

// publisher is one run of a publishing service. Several run at once if they
// belong to different partitions; each publishes about its own switches only.
type publisher struct {
	epoch     uint64
	partition string // empty: it works for all
}

// source is the run as the base of the network has it.
func (p publisher) source() nib.Source { return nib.Source{Partition: p.partition, Epoch: p.epoch} }

// publisherOf returns the run that publishes a service's events.
func publisherOf(s *local.Service) publisher { return publisher{s.Epoch.Load(), s.Partition()} }

// note records a fact.
func (f *facts) note(sub *local.Subject, key string, event any, source publisher) {
	lasting := sub.Decl.WithdrawnBy(event) == nil
	f.mu.Lock()
	defer f.mu.Unlock()
	of := members.RunOf{Service: members.OwnerOf(sub.Name), Partition: source.partition}
	if lasting {
		f.noteLasting(of, sub, key, event, source)
		return
	}
	m := f.known[sub]
	if m == nil {
		m = map[string]noted{}
		f.known[sub] = m
	}
	f.count++
	n := noted{event: event, source: source, number: f.count, gone: sub.Decl.GoneBy(event)}.after(m[key])
	switch {
	case !n.gone, n.later != nil:
		m[key] = n
	case m[key].source.partition == source.partition || !f.members.links.View.Load().Disowned(sub, key, event, source.partition): // else another partition owns it by now
		delete(m, key)
	}
	if n.gone {
		return
	}
	if epoch := f.swept[of]; source.epoch < epoch { // it came late
		delete(f.swept, of)
		time.AfterFunc(f.withdrawAfter, func() { f.sweep(of.Service, publisher{epoch, of.Partition}) })
	}
}

// noteLasting records a fact that is not withdrawn, such as where a host is: a new
// run takes such facts over. It records who sent it, unless that is the first run
// that was heard: what that sends cannot be outdated by an earlier one. The caller
// holds the lock.
func (f *facts) noteLasting(of members.RunOf, sub *local.Subject, key string, event any, source publisher) {
	runs, again := f.heard[of]
	if !again || source.epoch < runs.first {
		runs.first = source.epoch
	}
	runs.last = max(runs.last, source.epoch)
	f.heard[of] = runs
	if source.epoch == runs.first || sub.Decl.GoneBy(event) {
		delete(f.known[sub], key)
		return
	}
	if f.known[sub] == nil {
		f.known[sub] = map[string]noted{}
	}
	f.known[sub][key] = noted{source: source}
}

// isOutdated reports whether an event is outdated: its publisher has restarted since,
// and the new run has sent an event with the same key, or would have if the thing still
// existed. Such an event was delayed while this process was unreachable. In a service
// with standbys, a later run also replaces earlier ones that still run, even if the
// directory does not show that here yet: an instance that was suspended and resumes
// reports its own sessions as gone.
func (f *facts) isOutdated(sub *local.Subject, key string, event any, source publisher) bool {
	f.mu.Lock()
	fact, known := f.known[sub][key]
	last := fact.source
	if !known && sub.Decl.WithdrawnBy(event) == nil && !sub.Decl.GoneBy(event) {
		last = publisher{f.heard[members.RunOf{Service: members.OwnerOf(sub.Name), Partition: source.partition}].last, source.partition}
	}
	f.mu.Unlock()
	service := members.OwnerOf(sub.Name)
	return last.partition == source.partition && last.epoch > source.epoch && (hasStandbys(f.specs, service) || !f.members.lists(service, source.epoch))
}

// hasStandbys reports whether only one run of a service works at a time, which replaces
// the earlier ones.
func hasStandbys(specs []weft.Spec, service string) bool {
	return slices.ContainsFunc(specs, func(s weft.Spec) bool { return s.Standby && s.Name == service })
}

// published ends the runs that an entry shows no more, and schedules a sweep if it
// shows a new run of a publisher.
func (f *facts) published(old, new *members.Entry) {
	f.endRuns(old, new)
	f.sweepAfter(old, new)
	if new == nil || !f.listening(new.Partition) {
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
		time.AfterFunc(f.withdrawAfter, func() { f.sweep(s.Name, publisher{s.Epoch, new.Partition}) })
	}
}

// sweepAfter schedules a sweep for each run that an entry shows no more, if a later one was
// swept for while it still ran.
func (f *facts) sweepAfter(old, new *members.Entry) {
	if old == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range old.Services {
		of := members.RunOf{Service: s.Name, Partition: old.Partition}
		epoch := f.swept[of]
		runs := false
		if new != nil {
			is := new.Service(s.Name)
			runs = is != nil && is.Epoch == s.Epoch
		}
		if epoch > s.Epoch && !runs {
			time.AfterFunc(f.withdrawAfter, func() { f.sweep(of.Service, publisher{epoch, of.Partition}) })
		}
	}
}

// listening reports whether any service of this process receives the events
// published in a process of a partition.
func (f *facts) listening(partition string) bool {
	v := f.members.links.View.Load()
	return slices.ContainsFunc(f.worker.Running().Services, func(s *local.Service) bool {
		return v.Parts.Receives(s.Spec.Name, v.Mine.Partition, partition)
	})
}

// endRuns ends, for the base of the network, the runs that the entry of a process shows
// no more.
func (f *facts) endRuns(old, new *members.Entry) {
	if old == nil {
		return
	}
	for _, s := range old.Services {
		if new != nil {
			if is := new.Service(s.Name); is != nil && is.Epoch == s.Epoch && new.Partition == old.Partition {
				continue
			}
		}
		for i := range f.specs {
			if spec := &f.specs[i]; spec.Name == s.Name {
				f.worker.Over(spec, publisher{s.Epoch, old.Partition}.source())
			}
		}
	}
}

// sweep withdraws the facts that earlier runs of a publisher sent and the given
// run did not: the facts of its partition, and of partitions that do not run
// the service any more.
func (f *facts) sweep(service string, run publisher) {
	alive := f.members.alive(service)
	current := f.members.links.View.Load().Current
	f.mu.Lock()
	defer f.mu.Unlock()
	of := members.RunOf{Service: service, Partition: run.partition}
	f.swept[of] = max(f.swept[of], run.epoch)
	for sub, m := range f.known {
		if members.OwnerOf(sub.Name) != service {
			continue
		}
		for key, fact := range m {
			other := fact.source.partition != run.partition && current != nil && slices.ContainsFunc(current.InForce().Workers, func(w plan.Worker) bool {
				return w.Partition == fact.source.partition && slices.Contains(w.Services, service)
			})
			if fact.event != nil && !other {
				f.settle(sub, key, func(n noted) bool { return n.source.epoch < run.epoch && !alive[n.source.epoch] })
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

// withdrawOlder withdraws the facts that a publisher sent up to a note, because the
// publisher has sent all its facts again since then.
func (f *facts) withdrawOlder(sub *local.Subject, source publisher, since uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, fact := range f.known[sub] {
		if fact.event != nil {
			f.settle(sub, key, func(n noted) bool { return n.source == source && n.number <= since })
		}
	}
}

// settle forgets what was said of a thing that is over, and tells what holds then, if that
// is another: what a later run has said of it before, or that it is no more. The caller holds
// the lock, so that later events about it come behind.
func (f *facts) settle(sub *local.Subject, key string, over func(noted) bool) {
	if event, source := settled(sub, f.known[sub], key, over); event != nil {
		v := f.members.links.View.Load()
		for _, at := range sub.All() {
			if v.Parts.Receives(at.Service.Spec.Name, v.Mine.Partition, source.partition) {
				at.TakeBack(event, source.source())
			}
		}
	}
}

// settled forgets what was said of a thing in a map that is over, and returns the event that says
// what holds then, with its source; nil if nothing else does.
func settled(sub *local.Subject, m map[string]noted, key string, over func(noted) bool) (event any, source publisher) {
	last := m[key]
	var holds *noted
	var kept **noted = &holds
	for n := &last; n != nil; n = n.later {
		if !over(*n) {
			c := *n
			c.later = nil
			*kept, kept = &c, &c.later
		}
	}
	switch {
	case holds == nil:
		if delete(m, key); last.gone {
			return nil, last.source
		}
		return sub.Decl.WithdrawnBy(last.event), last.source
	case holds.number == last.number:
		m[key] = *holds
		return nil, last.source
	}
	m[key] = *holds
	return holds.event, holds.source
}
