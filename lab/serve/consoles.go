package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/internal/shares"
)

// consoles are those of all labs.
type consoles struct {
	places *shares.Places

	mu     sync.Mutex // guards what follows
	all    []*console // in the order in which they were opened
	begun  int        // that are being opened
	closed bool
}

// remembered is how long a console is that has ended.
const remembered = time.Minute

// add adds a console of a client, if there is room. Open makes it, which takes a while on
// another machine, and calls leave when the console has ended: its place is then free.
func (cs *consoles) add(client shares.Client, open func(leave func()) (*console, error)) (*console, error) {
	evicted := make(chan error, 1)
	place, err := cs.places.TryAcquire(client, func(why error) { evicted <- why })
	if err != nil {
		return nil, fullError(err)
	}
	if err := cs.reserve(); err != nil {
		place.Release()
		return nil, err
	}
	c, err := open(place.Release)
	cs.mu.Lock()
	cs.begun--
	closed := cs.closed
	if err == nil && !closed {
		cs.all = append(cs.all, c)
	}
	cs.mu.Unlock()
	if err != nil {
		place.Release()
		return nil, err
	}
	go func() {
		select {
		case why := <-evicted:
			c.evict(why)
		case <-c.over:
		}
	}()
	if closed {
		c.end()
		return nil, errServiceEnds
	}
	return c, nil
}

var errServiceEnds = api.Errorf(codes.Unavailable, "the service ends")

// reserve makes room for a console among those that are remembered: the one that
// ended first goes.
func (cs *consoles) reserve() error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.forget()
	if len(cs.all)+cs.begun >= maxConsoles {
		oldest := -1
		for i, c := range cs.all {
			if t := c.endedSince(); !t.IsZero() && (oldest < 0 || t.Before(cs.all[oldest].endedSince())) {
				oldest = i
			}
		}
		if oldest >= 0 {
			cs.all = slices.Delete(cs.all, oldest, oldest+1)
		}
	}
	if cs.closed {
		return errServiceEnds
	}
	cs.begun++
	return nil
}

// forget forgets consoles that have ended some time ago; cs.mu is held.
func (cs *consoles) forget() {
	cs.all = slices.DeleteFunc(cs.all, func(c *console) bool {
		t := c.endedSince()
		return !t.IsZero() && time.Since(t) > remembered
	})
}

func (cs *consoles) list() []*console {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.forget()
	return slices.Clone(cs.all)
}

func (cs *consoles) find(name string) (*console, error) {
	for _, c := range cs.list() {
		if c.is.Console == name { // which never changes
			return c, nil
		}
	}
	return nil, api.Errorf(codes.NotFound, "there is no console %q: it has been closed, or its command has ended a while ago", name)
}

// remove removes a console and returns it, nil if there is none of that name.
func (cs *consoles) remove(name string) *console {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for i, c := range cs.all {
		if c.is.Console == name {
			cs.all = slices.Delete(cs.all, i, i+1)
			return c
		}
	}
	return nil
}

// close ends all of them.
func (cs *consoles) close() {
	cs.mu.Lock()
	cs.closed = true
	all := cs.all
	cs.all = nil
	cs.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(c.end)
	}
	wg.Wait()
}

// OpenLabConsole starts a command at a terminal in a node (api.LabServer).
func (s *server) OpenLabConsole(ctx context.Context, req *api.OpenLabConsoleRequest) (*api.LabConsole, error) {
	if err := s.o.allow(AllowExec); err != nil {
		return nil, err
	}
	l, err := s.running(req.GetLab())
	if err != nil {
		return nil, err
	}
	if err := l.CheckNode(req.GetNode()); err != nil {
		return nil, api.Errorf(codes.NotFound, "%w", err)
	}
	const longest = 64 << 10
	command := req.GetCommand()
	switch n := len(strings.Join(command, " ")); {
	case n > longest:
		return nil, api.Errorf(codes.InvalidArgument, "the command has %d octets; allowed: at most %d", n, longest)
	case len(command) == 0:
		command = []string{shell()}
	}
	is := &api.LabConsole{
		Console: rand.Text(), Lab: req.GetLab(), Node: req.GetNode(), Command: command,
		Caller: machineservice.CallerOf(ctx).Name, Opened: stamp(time.Now()), Rows: req.GetRows(), Cols: req.GetCols(),
	}
	if is.Rows == 0 {
		is.Rows = 24
	}
	if is.Cols == 0 {
		is.Cols = 80
	}
	c, err := s.consoles.add(clientIn(ctx), func(leave func()) (*console, error) { return s.openConsole(l, is, leave) })
	if api.KindOf(err) == codes.Unknown && err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return c.snapshot(), nil
}

// shell is the command of a console that names none.
func shell() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}

// ListLabConsoles lists the consoles of a lab (api.LabServer).
func (s *server) ListLabConsoles(_ context.Context, req *api.ListLabConsolesRequest) (*api.ListLabConsolesResponse, error) {
	resp := &api.ListLabConsolesResponse{}
	for _, c := range s.consoles.list() {
		if is := c.snapshot(); is.GetLab() == req.GetLab() {
			resp.Consoles = append(resp.Consoles, is)
		}
	}
	return resp, nil
}

// CloseLabConsole ends a console (api.LabServer).
func (s *server) CloseLabConsole(_ context.Context, req *api.CloseLabConsoleRequest) (*api.CloseLabConsoleResponse, error) {
	if err := s.o.allow(AllowExec); err != nil {
		return nil, err
	}
	c := s.consoles.remove(req.GetConsole())
	if c != nil {
		c.end()
	}
	return &api.CloseLabConsoleResponse{Closed: c != nil}, nil
}

const (
	mostFrame    = 64 << 10         // of what a client sends at once
	frameTimeout = 10 * time.Second // for a client to take a frame
)

// attach attaches a client to a console by a WebSocket.
func (s *server) attach(w http.ResponseWriter, r *http.Request, fields map[string]string) {
	if err := s.o.allow(AllowExec); err != nil {
		machineservice.Refuse(w, err)
		return
	}
	c, err := s.consoles.find(fields["console"])
	if err != nil {
		machineservice.Refuse(w, err)
		return
	}
	evicted := make(chan error, 1)
	place, err := s.places.attached.TryAcquire(clientIn(r.Context()), func(why error) { evicted <- why })
	if err != nil {
		machineservice.Refuse(w, fullError(err))
		return
	}
	defer place.Release()
	// Where requests come from is for the gateway to look at; at the socket there are no pages.
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // it has been answered
	}
	defer ws.CloseNow()
	end := func(code websocket.StatusCode, why error) {
		place.Release() // before the client knows, so that it may come again
		_ = ws.Close(code, reason(why))
	}
	ws.SetReadLimit(mostFrame)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case why := <-evicted:
			end(websocket.StatusTryAgainLater, why) // before its context ends, which cuts it off
			cancel()
		case <-ctx.Done():
		}
	}()
	c.count(1)
	defer c.count(-1)
	go func() {
		defer cancel()
		if err := c.take(ctx, ws); err != nil {
			end(websocket.StatusPolicyViolation, err)
		}
	}()
	if c.show(ctx, ws) == nil { // else the client has gone
		text := "the command has ended"
		if e := c.snapshot().GetError(); e != "" {
			text += ": " + e
		}
		end(websocket.StatusNormalClosure, errors.New(text))
	}
}

// reason returns an error as a WebSocket's close frame has room for.
func reason(err error) string {
	const most = 120
	text := err.Error()
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}

func (c *console) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached += n
}

// show writes what the terminal says to a client, until the console ends.
func (c *console) show(ctx context.Context, ws *websocket.Conn) error {
	for at := c.first(); ; {
		b, next, news, ok := c.since(at)
		switch {
		case !ok: // it reads too slowly
			from := c.first()
			b, next = fmt.Appendf(nil, "\r\n[weft: %d octets are left out]\r\n", from-at), from
			fallthrough
		case len(b) > 0:
			writing, cancel := context.WithTimeout(ctx, frameTimeout)
			err := ws.Write(writing, websocket.MessageBinary, b)
			cancel()
			if err != nil {
				return err
			}
			at = next
		case news == nil:
			return nil
		default:
			select {
			case <-news:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// take gives the terminal what a client sends, until the client goes.
func (c *console) take(ctx context.Context, ws *websocket.Conn) error {
	for {
		kind, b, err := ws.Read(ctx)
		if err != nil {
			return nil // it has gone
		}
		if kind == websocket.MessageBinary {
			err := c.master.SetWriteDeadline(time.Now().Add(frameTimeout))
			if err == nil {
				_, err = c.master.Write(b)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return errors.New("the command does not read what is typed")
			}
			if err != nil {
				return nil // it has ended
			}
			continue
		}
		var size struct{ Rows, Cols uint32 }
		if err := json.Unmarshal(b, &size); err != nil {
			return fmt.Errorf("a text frame is {\"rows\": R, \"cols\": C}: %w", err)
		}
		if err := c.resize(size.Rows, size.Cols); err != nil {
			return err
		}
	}
}
