package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/internal/northbound"
)

const (
	eventsPath   = "/v1/events"
	writeTimeout = 10 * time.Second // of one event to one client
	pingInterval = 30 * time.Second
	closeTimeout = time.Second // for a client to answer the close
)

// stream sends the controller's events to the clients of the WebSocket. It never
// waits for one of them.
type stream struct {
	subjects []string
	queue    int // events that may wait for one client
	max      int // clients
	now      func() time.Time
	holds    func(caller) bool // whether a client may stay
	sent     func()
	slow     func()

	any     atomic.Int32 // number of clients
	mu      sync.Mutex   // guards what follows
	clients map[*client]bool
	entered int // clients so far
	closed  bool
	wait    sync.WaitGroup // of the clients' handlers
}

// client is one client of the event stream.
type client struct {
	wants  map[string]bool // subjects; nil is all
	who    caller
	number int // of those that have entered
	events chan waiting
	end    chan struct{} // closed, once, to end the client
	why    func(*websocket.Conn) error
	gone   bool // end is closed; guarded by stream.mu
}

// waiting is an event that waits for a client: or, instead of events that it was
// too slow for, the note that it is to read the state anew.
type waiting struct {
	text   []byte
	missed int // events that the note stands for
}

// wanted returns the subjects that a client's list of subjects and services
// names, nil for all.
func (s *stream) wanted(list string) (map[string]bool, error) {
	if list == "" {
		return nil, nil
	}
	wants := map[string]bool{}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		found := false
		for _, subject := range s.subjects {
			if subject == name || strings.HasPrefix(subject, name+".") {
				wants[subject], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("subjects: unknown subject %q; allowed: %s, or a service for all of its own", name, strings.Join(s.subjects, ", "))
		}
	}
	return wants, nil
}

// publish queues an event for the clients that want it.
func (s *stream) publish(subject string, event proto.Message) {
	if s.any.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var text []byte
	for c := range s.clients {
		if !c.gone && !s.holds(c.who) {
			s.drop(c, websocket.StatusPolicyViolation, c.who.ended())
		}
		if c.gone || c.wants != nil && !c.wants[subject] {
			continue
		}
		if text == nil {
			text = s.encode(subject, event)
		}
		select {
		case c.events <- waiting{text: text}:
			s.sent()
		default:
			s.overrun(c)
		}
	}
}

// overrun has a client that does not keep up read the state anew: of all that
// waits for it, and the event that has no room, it only gets a note. mu is held.
func (s *stream) overrun(c *client) {
	missed := 1
	for {
		select {
		case e := <-c.events:
			missed += max(e.missed, 1)
			continue
		default:
		}
		break
	}
	s.slow()
	note := fmt.Appendf(nil, `{"time":%q,"restarted":true,"missed":%d}`, s.now().UTC().Format(time.RFC3339Nano), missed)
	c.events <- waiting{note, missed} // there is room: nobody else puts anything there
}

// encode returns {"time":…,"subject":…,"event":…}.
func (s *stream) encode(subject string, event proto.Message) []byte {
	body, err := written().Marshal(event)
	if err != nil {
		body, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"time":%q,"subject":%q,"event":`, s.now().UTC().Format(time.RFC3339Nano), subject)
	_ = json.Compact(&b, body) // of what was just written: cannot fail
	b.WriteByte('}')
	return b.Bytes()
}

// drop ends a client with a status and a reason; mu is held.
func (s *stream) drop(c *client, code websocket.StatusCode, reason string) {
	if c.gone {
		return
	}
	c.gone = true
	c.why = func(conn *websocket.Conn) error { return conn.Close(code, reason) }
	close(c.end)
}

// add adds a client; false if there is no room. It makes room for a client that
// may change the network by dropping the oldest that may not.
func (s *stream) add(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stay := 0
	var oldest *client
	for other := range s.clients {
		if other.gone {
			continue
		}
		stay++
		if other.who.role < roleOperate && (oldest == nil || other.number < oldest.number) {
			oldest = other
		}
	}
	switch {
	case s.closed:
		return false
	case stay < s.max:
	case c.who.role < roleOperate || oldest == nil:
		return false
	default:
		s.drop(oldest, websocket.StatusTryAgainLater, "an operator follows the events instead; gateway.max_event_clients allows no more")
	}
	s.entered++
	c.number = s.entered
	s.clients[c] = true
	s.any.Store(int32(len(s.clients)))
	s.wait.Add(1)
	return true
}

func (s *stream) remove(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	s.any.Store(int32(len(s.clients)))
	s.wait.Done()
}

// close ends all clients and waits until they are gone.
func (s *stream) close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.clients {
		s.drop(c, websocket.StatusGoingAway, "the controller stops")
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// ServeHTTP serves one client until it goes, is dropped, or the stream closes.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wants, err := s.wanted(r.URL.Query().Get("subjects"))
	if err == nil {
		err = onlyParameters(r, "subjects")
	}
	if err != nil {
		refuse(w, r, codes.InvalidArgument, err.Error())
		return
	}
	c := &client{wants: wants, who: callerOf(r.Context()), events: make(chan waiting, s.queue), end: make(chan struct{})}
	if !s.add(c) {
		refuse(w, r, codes.ResourceExhausted, fmt.Sprintf("%d clients follow the events already; gateway.max_event_clients allows no more", s.max))
		return
	}
	defer s.remove(c)
	defer northbound.Follow(r.Context())()
	conn, err := websocket.Accept(w, r, nil) // it refuses foreign origins, and has answered then
	if err != nil {
		return
	}
	defer conn.CloseNow()
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	ctx = conn.CloseRead(ctx)
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		select {
		case <-c.end:
			c.close(conn, cut)
			return
		default:
		}
		select {
		case <-c.end:
		case <-ctx.Done():
			return
		case e := <-c.events:
			if s.send(ctx, c, conn, e.text) != nil {
				return
			}
		case <-ping.C:
			if !s.holds(c.who) {
				s.mu.Lock()
				s.drop(c, websocket.StatusPolicyViolation, c.who.ended())
				s.mu.Unlock()
				continue
			}
			bounded, cancel := context.WithTimeout(ctx, writeTimeout)
			err := conn.Ping(bounded)
			cancel()
			if err != nil {
				return
			}
		}
	}
}

// close sends a client the reason, and waits briefly for its answer before it
// cuts the connection.
func (c *client) close(conn *websocket.Conn, cut func()) {
	said := make(chan struct{})
	go func() {
		_ = c.why(conn) // it is gone either way
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
// that is dropped meanwhile and still does not read.
func (s *stream) send(ctx context.Context, c *client, conn *websocket.Conn, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	written := make(chan error, 1)
	go func() { written <- conn.Write(ctx, websocket.MessageText, text) }()
	select {
	case err := <-written:
		return err
	case <-c.end:
	}
	select {
	case err := <-written:
		return err
	case <-time.After(time.Second):
		return context.DeadlineExceeded
	}
}

// onlyParameters returns an error for a parameter of the query that is not known.
func onlyParameters(r *http.Request, known ...string) error {
	for key := range r.URL.Query() {
		if !slices.Contains(known, key) {
			return fmt.Errorf("unknown parameter %q; allowed: %s", key, strings.Join(known, ", "))
		}
	}
	return nil
}
