package ryu

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/internal/northbound"
	"github.com/weft-sdn/weft/object"
)

const (
	eventsPath   = "/v1.0/topology/ws"
	writeTimeout = 10 * time.Second // of one event to one client
	pingInterval = 30 * time.Second
	maxReply     = 64 << 10 // octets of one message of a client
)

// stream notifies clients of the WebSocket of changes in the network, as
// ws_topology does: calls of JSON-RPC 2.0 from the server to the client. It never
// waits for a client, and ignores the results that clients return.
type stream struct {
	queue, max int
	reached    object.Limits // of the configuration

	mu      sync.Mutex // guards what follows
	clients map[*client]bool
	entered int // clients so far
	closed  bool
	wait    sync.WaitGroup // of the clients' handlers
}

// client is one client of the stream.
type client struct {
	events chan event
	cancel context.CancelFunc
	rank   northbound.Rank
	number int // of those that have entered
}

// event is one change.
type event struct {
	method string
	object any
}

// call is a call of JSON-RPC 2.0.
type call struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

func newStream(queue, clients int) *stream {
	return &stream{queue: queue, max: clients, clients: map[*client]bool{}}
}

// publish queues an event for every client. It drops a client whose queue is
// full.
func (s *stream) publish(method string, object any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		select {
		case c.events <- event{method, object}:
		default:
			c.cancel()
			s.reached.Reach(time.Now().UnixNano(), "ryu.event_queue", s.queue, "clients")
		}
	}
}

// makeRoom drops the oldest client below a rank of operator for one of that
// rank; mu is held.
func (s *stream) makeRoom(rank northbound.Rank) bool {
	var oldest *client
	for c := range s.clients {
		if c.rank < northbound.Operator && (oldest == nil || c.number < oldest.number) {
			oldest = c
		}
	}
	if rank < northbound.Operator || oldest == nil {
		return false
	}
	oldest.cancel()
	delete(s.clients, oldest)
	return true
}

// close ends all clients and waits for them.
func (s *stream) close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.clients {
		c.cancel()
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// ServeHTTP serves one client of a rank until it goes. If there are too many, it
// drops the oldest client that is not an operator to make room for an operator.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request, rank northbound.Rank) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s.mu.Lock()
	s.entered++
	c := &client{events: make(chan event, s.queue), cancel: cancel, rank: rank, number: s.entered}
	if full := len(s.clients) >= s.max && !s.makeRoom(rank); s.closed || full {
		if full {
			s.reached.Reach(time.Now().UnixNano(), "ryu.max_event_clients", s.max, "clients")
		}
		s.mu.Unlock()
		http.Error(w, "too many clients; ryu.max_event_clients says how many may be", http.StatusServiceUnavailable)
		return
	}
	s.clients[c] = true
	s.wait.Add(1)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.clients, c)
		s.mu.Unlock()
		s.wait.Done()
	}()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxReply)
	go func() {
		defer cancel()
		for {
			if _, _, err := conn.Read(ctx); err != nil {
				return
			}
		}
	}()
	c.serve(ctx, conn)
}

// serve sends events, numbered from 1, and a ping when there are none.
func (c *client) serve(ctx context.Context, conn *websocket.Conn) {
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for id := uint64(1); ; {
		var err error
		select {
		case <-ctx.Done():
			return
		case e := <-c.events:
			var text []byte
			if text, err = json.Marshal(call{"2.0", id, e.method, []any{e.object}}); err == nil {
				id++
				err = within(ctx, func(ctx context.Context) error { return conn.Write(ctx, websocket.MessageText, text) })
			}
		case <-ping.C:
			err = within(ctx, conn.Ping)
		}
		if err != nil {
			return
		}
	}
}

func within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return f(ctx)
}
