package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// logRig is an event log with a reader that keeps what it knows of hosts.
type logRig struct {
	*eventLog
	t     *testing.T
	at    *api.EventPosition
	hosts map[string]string // its addresses, by host
	last  uint64
	news  []string // what came as events, not as state
}

func newLogRig(t *testing.T) *logRig {
	l := newEventLog(time.Now, t.Context().Done())
	l.subjects = []string{api.HostChangedEvent.Name, api.LinkChangedEvent.Name}
	return &logRig{eventLog: l, t: t, hosts: map[string]string{}}
}

// host publishes what a host is.
func (r *logRig) host(mac, change, address string) {
	e := &api.HostChanged{Change: change, Host: &api.Host{Mac: mac, Ipv4: []string{address}}}
	key, fact := api.HostChangedEvent.KeyOf(e)
	r.add(api.HostChangedEvent.Name, e, key, fact, api.HostChangedEvent.GoneBy(e), "")
}

// take reads until there is nothing more, and returns whether it was begun anew.
func (r *logRig) take() (restarted bool) {
	r.t.Helper()
	for {
		m, err := r.read(r.t.Context(), &api.ReadEventsRequest{Position: r.at})
		if err != nil {
			r.t.Fatal(err)
		}
		if m.Restarted {
			restarted, r.last = true, 0
			clear(r.hosts)
		}
		r.at = m.Position
		for _, e := range m.Events {
			if e.Number <= r.last {
				r.t.Fatalf("event %d behind %d", e.Number, r.last)
			}
			r.last = e.Number
			h := &api.HostChanged{}
			if err := e.Event.UnmarshalTo(h); err != nil {
				r.t.Fatal(err)
			}
			if r.hosts[h.Host.Mac] = h.Host.Ipv4[0]; h.Change == "gone" {
				delete(r.hosts, h.Host.Mac)
			}
			if !e.State {
				r.news = append(r.news, h.Change+" "+h.Host.Mac)
			}
		}
		if len(m.Events) == 0 && !m.Restarted {
			return restarted
		}
	}
}

func (r *logRig) knows(want map[string]string) {
	r.t.Helper()
	if fmt.Sprint(r.hosts) != fmt.Sprint(want) {
		r.t.Errorf("knows %.300s, want %.300s", fmt.Sprint(r.hosts), fmt.Sprint(want))
	}
}

// What is retained comes first, then each event once; whoever comes again goes
// on where it was.
func TestStateFirstThenEvents(t *testing.T) {
	r := newLogRig(t)
	r.host("a", "learnt", "1")
	r.host("b", "learnt", "1")
	r.host("a", "addresses", "2")
	r.host("b", "gone", "1")
	if !r.take() {
		t.Error("the beginning is not said to be one")
	}
	r.knows(map[string]string{"a": "2"})
	if len(r.news) != 0 {
		t.Errorf("state came as events %v", r.news)
	}
	r.host("c", "learnt", "3")
	r.host("a", "gone", "2")
	if r.take() || fmt.Sprint(r.news) != "[learnt c gone a]" {
		t.Errorf("events %v", r.news)
	}
	r.knows(map[string]string{"c": "3"})
}

// Whoever has missed events, or comes from another run, is told so, and knows
// after it what is; the log stays bounded.
func TestMissedEvents(t *testing.T) {
	r := newLogRig(t)
	r.host("old", "learnt", "0")
	r.take()
	want := map[string]string{}
	for i := range 3 * logMost {
		mac := fmt.Sprint(i % 5000)
		r.host(mac, "learnt", fmt.Sprint(i))
		want[mac] = fmt.Sprint(i)
	}
	r.host("old", "gone", "0")
	if !r.take() {
		t.Error("what was missed is not told")
	}
	r.knows(want)
	if r.last-r.first >= logMost {
		t.Errorf("%d events are kept", r.last-r.first+1)
	}
	for range 100 { // the largest that a switch may bring about
		r.host("large", "learnt", strings.Repeat("x", 4<<20))
	}
	if r.size > logSize+5<<20 || len(r.facts)-r.old != 5001 || r.old > 6000 {
		t.Errorf("%d octets and %d facts are kept, %d outdated", r.size, len(r.facts)-r.old, r.old)
	}
	next := newLogRig(t)
	next.at, next.hosts = r.at, r.hosts
	next.host("new", "learnt", "1")
	if !next.take() {
		t.Error("another run is not told")
	}
	next.knows(map[string]string{"new": "1"})
}

// While the state is read page by page, it goes on changing.
func TestStateChangesWhileItIsRead(t *testing.T) {
	r := newLogRig(t)
	want := map[string]string{}
	for i := range 3 * readMost {
		r.host(fmt.Sprint(i), "learnt", "0")
		want[fmt.Sprint(i)] = "0"
	}
	m, err := r.read(t.Context(), &api.ReadEventsRequest{})
	if err != nil || len(m.Events) != readMost || m.Position.State == 0 {
		t.Fatal(len(m.GetEvents()), m.GetPosition(), err)
	}
	r.at = m.Position
	for _, e := range m.Events {
		h := &api.HostChanged{}
		_ = e.Event.UnmarshalTo(h) // or it is missed below
		r.hosts[h.Host.Mac] = h.Host.Ipv4[0]
	}
	for _, i := range []int{1, readMost + 1, 3*readMost - 1} {
		r.host(fmt.Sprint(i), "gone", "0")
		delete(want, fmt.Sprint(i))
		r.host(fmt.Sprint(i+1), "addresses", "1")
		want[fmt.Sprint(i+1)] = "1"
	}
	r.take()
	r.knows(want)
}

// A reader waits until there is an event that it wants, or its time is over.
func TestReadersWait(t *testing.T) {
	r := newLogRig(t)
	r.take()
	answer := make(chan *api.ReadEventsResponse, 1)
	go func() {
		m, _ := r.read(context.Background(), &api.ReadEventsRequest{Position: r.at, Subjects: []string{"hosts"}, WaitMs: 20_000})
		answer <- m
	}()
	link := &api.LinkChanged{Link: &api.Link{}}
	r.add(api.LinkChangedEvent.Name, link, "1", true, false, "")
	r.host("a", "learnt", "1")
	if m := <-answer; len(m.GetEvents()) != 1 || m.Events[0].Subject != api.HostChangedEvent.Name {
		t.Errorf("answered %v", m)
	}
	if m, err := r.read(t.Context(), &api.ReadEventsRequest{Position: r.at, Subjects: []string{"discovery"}, WaitMs: 1}); err != nil || len(m.Events) != 1 {
		t.Errorf("answered %v, %v", m, err)
	}
	for _, bad := range []*api.ReadEventsRequest{{Subjects: []string{"hosts.Gone"}}, {WaitMs: 20_001}} {
		if _, err := r.read(t.Context(), bad); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// A client that knows where the log begins reads what happened before it came, and
// gets the state instead of what the log has no more.
func TestEarlierEvents(t *testing.T) {
	r := newLogRig(t)
	for i := range logMost + 100 {
		r.host("a", "addresses", fmt.Sprint(i))
	}
	first, err := r.read(t.Context(), &api.ReadEventsRequest{})
	if err != nil || first.Oldest != 101 {
		t.Fatalf("the oldest is %d, %v", first.GetOldest(), err)
	}
	at := func(number uint64) *api.ReadEventsResponse {
		m, err := r.read(t.Context(), &api.ReadEventsRequest{Position: &api.EventPosition{Epoch: r.epoch, Number: number}})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := at(first.Oldest - 1); m.Restarted || len(m.Events) == 0 || m.Events[0].Number != first.Oldest || m.Events[0].State {
		t.Errorf("from the oldest on: %.200v", m)
	}
	if m := at(first.Oldest - 2); !m.Restarted {
		t.Errorf("before the oldest: %.200v", m)
	}
}
