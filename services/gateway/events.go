package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/internal/northbound"
	"github.com/weft-sdn/weft/internal/shares"
)

const (
	eventsPath   = "/v1/events"
	writeTimeout = 10 * time.Second // of one event to one client
	pingInterval = 30 * time.Second
	closeTimeout = time.Second // for a client to answer the close
	batchMost    = 64          // events that one client writes between two looks at the log
)

// stream sends the controller's events, as the log has them, to the clients of
// the WebSocket. Each reads the log at its own pace; nobody waits for it.
type stream struct {
	log     *eventLog
	behind  int // events by which a client may be behind
	holds   func(caller) bool
	sent    func()
	slow    func()
	places  *shares.Places
	full    func()        // counts clients for which there is no place
	stopped chan struct{} // closed when the gateway stops
}

// client is one client of the event stream.
type client struct {
	wants map[string]bool // subjects; nil is all
	at    uint64          // the last event that it got, or did not want
	lost  bool            // it is to learn that the state begins anew at this one
	end   chan ending     // has one value if the client is to go
}

// ending is why a client goes.
type ending struct {
	code   websocket.StatusCode
	reason string
}

// client returns the client of a request: it gets the events after the position
// of its query, or those that follow.
func (s *stream) client(query url.Values) (*client, error) {
	for key := range query {
		if !slices.Contains([]string{"subjects", "epoch", "number"}, key) {
			return nil, fmt.Errorf("unknown parameter %q; allowed: subjects, epoch, number", key)
		}
	}
	var names []string
	for name := range strings.SplitSeq(query.Get("subjects"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	wants, err := s.log.wanted(names)
	if err != nil {
		return nil, err
	}
	c := &client{wants: wants, end: make(chan ending, 1)}
	if !query.Has("epoch") && !query.Has("number") {
		_, c.at = s.log.span()
		return c, nil
	}
	epoch, err := position(query, "epoch")
	if err == nil {
		c.at, err = position(query, "number")
	}
	if err != nil {
		return nil, err
	}
	if _, last := s.log.span(); epoch != s.log.epoch || c.at > last {
		c.at, c.lost = last, true
	}
	return c, nil
}

// position returns a part of a position in a query.
func position(query url.Values, key string) (uint64, error) {
	n, err := strconv.ParseUint(query.Get(key), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %.40q: want that of the last event that was read; epoch and number belong together", key, query.Get(key))
	}
	return n, nil
}

// next returns what a client gets next; wake is closed when another event
// arrives.
func (s *stream) next(c *client) (texts [][]byte, wake <-chan struct{}) {
	events, missed, wake := s.log.after(c, s.behind)
	if missed > 0 {
		s.slow()
	}
	if missed > 0 || c.lost {
		c.lost = false
		return [][]byte{s.note(c, missed)}, wake
	}
	for _, e := range events {
		texts = append(texts, s.log.text(e))
	}
	return texts, wake
}

// note returns {"time":…,"epoch":…,"number":…,"restarted":true,"missed":…}: the
// client is to read the state anew, for it has missed events.
func (s *stream) note(c *client, missed uint64) []byte {
	return fmt.Appendf(nil, `{"time":%q,"epoch":"%d","number":"%d","restarted":true,"missed":%d}`, s.log.now().UTC().Format(time.RFC3339Nano), s.log.epoch, c.at, missed)
}

// span returns the numbers of the oldest and of the last event; the last is 0 if
// there was none.
func (l *eventLog) span() (first, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first, l.last
}

// after returns the next events for a client, and moves it there. One that is
// behind by too many misses them; missed counts those that it wanted, as far as
// they are known.
func (l *eventLog) after(c *client, behind int) (events []*logged, missed uint64, wake <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if gone := l.first - 1; c.at < gone || l.last-c.at > uint64(behind) {
		if c.at < gone {
			missed, c.at = gone-c.at, gone
		}
		for ; c.at < l.last; c.at++ {
			if c.wants == nil || c.wants[l.ring[(c.at+1)%logMost].subject] {
				missed++
			}
		}
		return nil, missed, l.wake
	}
	for c.at < l.last && len(events) < batchMost {
		c.at++
		if e := l.ring[c.at%logMost]; c.wants == nil || c.wants[e.subject] {
			events = append(events, e)
		}
	}
	return events, 0, l.wake
}

// text returns {"time":…,"epoch":…,"number":…,"subject":…,"event":…}. It is made
// once for all clients, as long as the log has the event.
func (l *eventLog) text(e *logged) []byte {
	l.mu.Lock()
	text := e.text
	l.mu.Unlock()
	if text != nil {
		return text
	}
	body, err := written().Marshal(e.event)
	if err != nil {
		body, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"time":%q,"epoch":"%d","number":"%d","subject":%q,"event":`, e.at.UTC().Format(time.RFC3339Nano), l.epoch, e.number, e.subject)
	_ = json.Compact(&b, body) // of what was just written: cannot fail
	b.WriteByte('}')
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.text == nil && l.ring[e.number%logMost] == e {
		e.text = b.Bytes()
		l.size += len(e.text)
		l.trim()
	}
	return b.Bytes()
}

// ServeHTTP serves one client until it goes, has to go, or the stream closes.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := s.client(r.URL.Query())
	if err != nil {
		refuse(w, r, codes.InvalidArgument, err.Error())
		return
	}
	who := callerOf(r.Context())
	place, err := s.places.TryAcquire(who.client(), func(error) {
		c.end <- ending{websocket.StatusTryAgainLater, "another client follows the events instead; gateway.max_event_clients allows no more"}
	})
	if err != nil {
		s.full()
		refuse(w, r, codes.ResourceExhausted, fmt.Sprintf("%d clients follow the events already; gateway.max_event_clients allows no more", s.places.Limit()))
		return
	}
	defer place.Release()
	defer northbound.Follow(r.Context())()
	conn, err := websocket.Accept(w, r, nil) // it refuses foreign origins, and has answered then
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	if why := s.serve(conn.CloseRead(ctx), conn, c, who); why != nil {
		place.Release() // before the client knows, so that it may come again
		why.close(conn, cut)
	}
}

// serve writes events to a client; nil if it has gone.
func (s *stream) serve(ctx context.Context, conn *websocket.Conn, c *client, who caller) *ending {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	pinged, woken := time.Now(), false
	for {
		if !s.holds(who) {
			return &ending{websocket.StatusPolicyViolation, who.ended()}
		}
		texts, wake := s.next(c)
		for _, text := range texts {
			if why, err := s.send(ctx, c, conn, text); why != nil || err != nil {
				return why
			}
		}
		if len(texts) > 0 {
			woken = false
			continue
		}
		if woken {
			time.Sleep(gather)
		}
		woken = false
		select {
		case why := <-c.end:
			return &why
		case <-s.stopped:
			return &ending{websocket.StatusGoingAway, "the controller stops"}
		case <-ctx.Done():
			return nil
		case <-wake:
			woken = true
		case <-look.C:
		}
		if time.Since(pinged) < pingInterval {
			continue
		}
		pinged = time.Now()
		bounded, cancel := context.WithTimeout(ctx, writeTimeout)
		err := conn.Ping(bounded)
		cancel()
		if err != nil {
			return nil
		}
	}
}

// close sends a client the reason, and waits briefly for its answer before it
// cuts the connection.
func (e *ending) close(conn *websocket.Conn, cut func()) {
	said := make(chan struct{})
	go func() {
		_ = conn.Close(e.code, e.reason) // it is gone either way
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(closeTimeout):
		cut()
		<-said
	}
}

// send writes one event. It gives up a client that does not take it in time, or
// that is to go meanwhile and still does not read.
func (s *stream) send(ctx context.Context, c *client, conn *websocket.Conn, text []byte) (*ending, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	written := make(chan error, 1)
	go func() { written <- conn.Write(ctx, websocket.MessageText, text) }()
	var why *ending
	select {
	case err := <-written:
		if err == nil {
			s.sent()
		}
		return nil, err
	case end := <-c.end:
		why = &end
	case <-s.stopped:
		why = &ending{websocket.StatusGoingAway, "the controller stops"}
	}
	select {
	case err := <-written:
		if err != nil {
			return nil, err
		}
		return why, nil
	case <-time.After(time.Second):
		return nil, context.DeadlineExceeded
	}
}
