package gateway

import (
	"container/list"
	"context"
	"fmt"
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

	mu    sync.Mutex                              // guards what follows
	ring  []logged                                // a power of two of them; event n is at n modulo its length
	first uint64                                  // number of the oldest event in ring
	last  uint64                                  // and of the last; 0: none yet
	size  int                                     // octets of the events in ring
	facts *list.List                              // *logged, in the order of their numbers
	about map[factsAbout]map[string]*list.Element // facts, by their whole key
	wake  chan struct{}                           // closed when there is another event
}

// logged is one event.
type logged struct {
	number  uint64
	at      time.Time
	subject string
	event   proto.Message
	size    int
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
)

func newEventLog(now func() time.Time, done <-chan struct{}) *eventLog {
	return &eventLog{
		epoch: uint64(now().UnixNano()), now: now, done: done, ring: make([]logged, logMost), first: 1,
		facts: list.New(), about: map[factsAbout]map[string]*list.Element{}, wake: make(chan struct{}),
	}
}

// add numbers an event. For a fact, key identifies what it is about, and gone
// means that this no longer exists; renews is the subject whose facts under the
// key are outdated.
func (l *eventLog) add(subject string, event proto.Message, key string, fact, gone bool, renews string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e := &logged{l.last, l.now(), subject, event, proto.Size(event)}
	for l.size += e.size; l.last-l.first >= logMost || l.size > logSize && l.first < l.last; l.first++ {
		l.size -= l.ring[l.first%logMost].size
		l.ring[l.first%logMost] = logged{}
	}
	l.ring[l.last%logMost] = *e
	if fact {
		l.retain(e, key, gone)
	}
	if fact && renews != "" {
		group := factsAbout{renews, key}
		for _, old := range l.about[group] {
			l.facts.Remove(old)
		}
		delete(l.about, group)
	}
	close(l.wake)
	l.wake = make(chan struct{})
}

// retain replaces the last fact under its key; mu is held.
func (l *eventLog) retain(e *logged, key string, gone bool) {
	group := aboutOf(e.subject, key)
	if old := l.about[group][key]; old != nil {
		l.facts.Remove(old)
	}
	if gone {
		if delete(l.about[group], key); len(l.about[group]) == 0 {
			delete(l.about, group)
		}
		return
	}
	if l.about[group] == nil {
		l.about[group] = map[string]*list.Element{}
	}
	l.about[group][key] = l.facts.PushBack(e)
}

// wanted returns the subjects that a list of subjects and services names, nil for
// all.
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
			return nil, api.Errorf(codes.InvalidArgument, "subject %.80q is unknown; there are %s, or a service for all of its own", name, strings.Join(l.subjects, ", "))
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
	at := req.GetPosition()
	for {
		resp, more, wake, err := l.page(at, wants)
		if err != nil || len(resp.Events) > 0 || resp.Restarted || wait == 0 && !more {
			return resp, err
		}
		at = resp.Position // of events that are not wanted
		if more {
			continue
		}
		select {
		case <-wake:
		case <-timer.C:
			return resp, nil
		case <-ctx.Done():
			return resp, nil
		case <-l.done:
			return resp, nil
		}
	}
}

// page returns the events after a position; more means that there are further
// ones, and wake is closed when another event arrives.
func (l *eventLog) page(at *api.EventPosition, wants map[string]bool) (resp *api.ReadEventsResponse, more bool, wake chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	resp = &api.ReadEventsResponse{Position: &api.EventPosition{Epoch: l.epoch, Number: at.GetNumber(), State: at.GetState()}}
	p := resp.Position
	if at.GetEpoch() != l.epoch || p.Number > l.last || p.State > l.last || p.State == 0 && p.Number+1 < l.first || p.State != 0 && p.State+1 < l.first {
		// All known facts, up to the last event; then the events that follow.
		p.Number, p.State, resp.Restarted = 0, l.last, true
	}
	size := 0
	put := func(e *logged) bool {
		if wants == nil || wants[e.subject] {
			if len(resp.Events) >= readMost || size > readSize {
				return false
			}
			body := &anypb.Any{}
			if err = body.MarshalFrom(e.event); err != nil {
				err = fmt.Errorf("event %d, %s: %w", e.number, e.subject, err)
				return false
			}
			size += e.size
			resp.Events = append(resp.Events, &api.LoggedEvent{
				Number: e.number, Time: e.at.UTC().Format(time.RFC3339Nano), Subject: e.subject, State: p.State != 0, Event: body,
			})
		}
		p.Number = e.number
		return true
	}
	if p.State != 0 {
		for f := l.facts.Front(); f != nil; f = f.Next() {
			e := f.Value.(*logged)
			if e.number > p.State {
				break
			}
			if e.number > p.Number && !put(e) {
				return resp, true, l.wake, err
			}
		}
		p.Number, p.State = p.State, 0
		return resp, p.Number < l.last, l.wake, nil
	}
	for p.Number < l.last {
		if !put(&l.ring[(p.Number+1)%logMost]) {
			return resp, true, l.wake, err
		}
	}
	return resp, false, l.wake, nil
}
