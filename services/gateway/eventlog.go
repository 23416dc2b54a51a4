package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-sdn/weft/api"
)

// eventLog keeps the controller's events, numbered: the last logMost of them, and
// the last of each retained subject and key. It never waits for a reader: one
// that has missed events learns this, and reads the state again.
type eventLog struct {
	epoch    uint64 // of this run; numbers of another have no meaning
	subjects []string
	now      func() time.Time
	done     <-chan struct{} // closed when the service ends

	mu    sync.Mutex                        // guards what follows
	ring  []*logged                         // a power of two of them; event n is at n modulo its length
	first uint64                            // number of the oldest event in ring
	last  uint64                            // and of the last; 0: none yet
	size  int                               // octets of the events in ring
	facts []*logged                         // in the order of their numbers; some are outdated
	old   int                               // how many
	about map[factsAbout]map[string]*logged // facts, by their whole key
	wake  chan struct{}                     // closed when there is another event
}

// logged is one event.
type logged struct {
	number  uint64
	at      time.Time
	subject string
	event   proto.Message
	size    int

	outdated bool   // it is no fact any more; guarded by eventLog.mu
	text     []byte // what followers get, once one has asked; guarded by eventLog.mu
}

// factsAbout are the facts of a subject whose keys share their first part: KEY
// and KEY/....
type factsAbout struct{ subject, first string }

func aboutOf(subject, key string) factsAbout {
	first, _, _ := strings.Cut(key, "/")
	return factsAbout{subject, first}
}

const (
	logMost  = 1 << 14
	logSize  = 64 << 20 // octets of the events in the log
	readMost = 1000     // events of one answer
	readSize = 1 << 20  // octets of one answer, about
	waitMost = 20 * time.Second

	// A reader that was woken by events that it does not want lets further ones
	// gather for so long before it looks again.
	gather = 10 * time.Millisecond
)

func newEventLog(now func() time.Time, done <-chan struct{}) *eventLog {
	return &eventLog{
		epoch: uint64(now().UnixNano()), now: now, done: done, ring: make([]*logged, logMost), first: 1,
		about: map[factsAbout]map[string]*logged{}, wake: make(chan struct{}),
	}
}

// add numbers an event. For a fact, key identifies what it is about, and gone
// means that this no longer exists; renews is the subject whose facts under the
// key are outdated.
func (l *eventLog) add(subject string, event proto.Message, key string, fact, gone bool, renews string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e := &logged{number: l.last, at: l.now(), subject: subject, event: event, size: sizeOf(event)}
	l.size += e.size
	l.trim()
	l.ring[l.last%logMost] = e
	if fact {
		l.retain(e, key, gone)
	}
	if fact && renews != "" {
		group := factsAbout{renews, key}
		for _, f := range l.about[group] {
			l.outdate(f)
		}
		delete(l.about, group)
	}
	close(l.wake)
	l.wake = make(chan struct{})
}

// trim removes the oldest events from a ring that is full; mu is held.
func (l *eventLog) trim() {
	for ; l.last-l.first >= logMost || l.size > logSize && l.first < l.last; l.first++ {
		e := l.ring[l.first%logMost]
		l.size -= e.size + len(e.text)
		e.text, l.ring[l.first%logMost] = nil, nil
	}
}

// retain replaces the last fact under its key; mu is held.
func (l *eventLog) retain(e *logged, key string, gone bool) {
	group := aboutOf(e.subject, key)
	if f := l.about[group][key]; f != nil {
		l.outdate(f)
	}
	if gone {
		if delete(l.about[group], key); len(l.about[group]) == 0 {
			delete(l.about, group)
		}
		return
	}
	if l.about[group] == nil {
		l.about[group] = map[string]*logged{}
	}
	l.about[group][key] = e
	l.facts = append(l.facts, e)
}

// outdate removes a fact; mu is held.
func (l *eventLog) outdate(f *logged) {
	f.outdated = true
	if l.old++; l.old > 1000 && l.old > len(l.facts)/2 {
		l.facts = slices.DeleteFunc(l.facts, func(f *logged) bool { return f.outdated })
		l.old = 0
	}
}

// wanted returns the subjects that names of subjects and services stand for, nil
// for all.
func (l *eventLog) wanted(names []string) (map[string]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	wants := map[string]bool{}
	for _, name := range names {
		found := false
		for _, subject := range l.subjects {
			if subject == name || strings.HasPrefix(subject, name+".") {
				wants[subject], found = true, true
			}
		}
		if !found {
			return nil, api.Errorf(codes.InvalidArgument, "subject %.80q is unknown; allowed: %s, or a service for all of its own", name, strings.Join(l.subjects, ", "))
		}
	}
	return wants, nil
}

// read answers ReadEvents.
func (l *eventLog) read(ctx context.Context, req *api.ReadEventsRequest) (*api.ReadEventsResponse, error) {
	wants, err := l.wanted(req.GetSubjects())
	if err != nil {
		return nil, err
	}
	wait := time.Duration(req.GetWaitMs()) * time.Millisecond
	if wait > waitMost {
		return nil, api.Errorf(codes.InvalidArgument, "wait_ms %d: want at most %d", req.GetWaitMs(), waitMost.Milliseconds())
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	p := extract{EventPosition: req.GetPosition()}
	for woken := false; ; {
		wake := l.page(&p, wants)
		if len(p.events) > 0 || p.restarted || wait == 0 && !p.more {
			return p.answer()
		}
		if p.more {
			continue // behind events that are not wanted
		}
		if woken {
			time.Sleep(gather)
		}
		select {
		case <-wake:
			woken = true
		case <-timer.C:
			return p.answer()
		case <-ctx.Done():
			return p.answer()
		case <-l.done:
			return p.answer()
		}
	}
}

// extract is a position, and what comes there.
type extract struct {
	*api.EventPosition
	oldest    uint64 // event of the log
	events    []*logged
	state     bool // the events belong to the state
	restarted bool
	more      bool // there is more behind it
}

// answer returns an extract as clients see it.
func (p *extract) answer() (*api.ReadEventsResponse, error) {
	resp := &api.ReadEventsResponse{Position: p.EventPosition, Restarted: p.restarted, Oldest: p.oldest}
	for _, e := range p.events {
		body := &anypb.Any{}
		if err := body.MarshalFrom(e.event); err != nil {
			return nil, fmt.Errorf("event %d, %s: %w", e.number, e.subject, err)
		}
		resp.Events = append(resp.Events, &api.LoggedEvent{
			Number: e.number, Time: e.at.UTC().Format(time.RFC3339Nano), Subject: e.subject, State: p.state, Event: body,
		})
	}
	return resp, nil
}

// page moves an extract to what is behind a position; wake is closed when another event
// arrives.
func (l *eventLog) page(p *extract, wants map[string]bool) (wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := p.EventPosition
	at := &api.EventPosition{Epoch: l.epoch, Number: from.GetNumber(), State: from.GetState()}
	*p = extract{EventPosition: at, oldest: l.first}
	if from.GetEpoch() != l.epoch || at.Number > l.last || at.State > l.last || at.State == 0 && at.Number+1 < l.first || at.State != 0 && at.State+1 < l.first {
		// All known facts, up to the last event; then the events that follow.
		at.Number, at.State, p.restarted = 0, l.last, true
	}
	size := 0
	put := func(e *logged) (full bool) {
		if wants == nil || wants[e.subject] {
			if len(p.events) >= readMost || size > readSize {
				return true
			}
			size += e.size
			p.events = append(p.events, e)
		}
		at.Number = e.number
		return false
	}
	if p.state = at.State != 0; p.state {
		next, _ := slices.BinarySearchFunc(l.facts, at.Number+1, func(f *logged, n uint64) int { return cmp.Compare(f.number, n) })
		for _, f := range l.facts[next:] {
			if f.number > at.State {
				break
			}
			if p.more = !f.outdated && put(f); p.more {
				return l.wake
			}
		}
		at.Number, at.State = at.State, 0
		p.more = at.Number < l.last
		return l.wake
	}
	for at.Number < l.last {
		if p.more = put(l.ring[(at.Number+1)%logMost]); p.more {
			break
		}
	}
	return l.wake
}
