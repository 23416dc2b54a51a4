package apps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

const (
	writeTimeout = 5 * time.Second // of one message
	pingInterval = 15 * time.Second
	maxConnCalls = 64 // calls under way at once of one WebSocket; more wait
)

// frame is what a client sends: one of hello, decisions, or a call with its id.
type frame struct {
	Hello     json.RawMessage `json:"hello"`
	Decisions json.RawMessage `json:"decisions"`
	ID        *json.Number    `json:"id"`
	Call      string          `json:"call"`
	Request   json.RawMessage `json:"request"`
}

// socket is one client by WebSocket.
type socket struct {
	o     *Server
	conn  *websocket.Conn
	talk  *conversation
	rate  *rate.Limiter
	room  chan struct{} // one token for each call under way
	calls sync.WaitGroup
	ctx   context.Context // of the connection
	end   context.CancelCauseFunc
	app   *app            // nil until hello
	visit context.Context // that of the connection, with who calls; whoever reads frames uses it
}

// serveSocket serves one client until it goes or is cut off.
func (o *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if err := o.enter(); err != nil {
		refuse(w, err)
		return
	}
	defer o.leave()
	visit, err := o.visited(o.ctx, r.Context(), r.RemoteAddr, r.Header.Get(appHeader))
	if err != nil {
		refuse(w, err)
		return
	}
	conn, err := websocket.Accept(w, r, nil) // it refuses foreign origins, and has answered
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(maxMessage)
	s := &socket{o: o, conn: conn, rate: rate.NewLimiter(rate.Limit(o.config.Limits.CallRate), int(o.config.Limits.CallRate)/10+1), room: make(chan struct{}, maxConnCalls)}
	s.ctx, s.end = context.WithCancelCause(visit)
	s.visit = s.ctx
	s.talk = newConversation(s.ctx, "ws", r.RemoteAddr)
	// Keep reading while the client receives the reason for its end, because
	// its answer arrives that way; a cancelled context would cut the
	// connection.
	reading, cut := context.WithCancel(context.Background())
	defer cut()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-s.ctx.Done()
		s.close(context.Cause(s.ctx))
		cut()
	}()
	go s.watch()
	s.end(s.read(reading, r.Context()))
	<-closed
	s.calls.Wait()
	if s.app != nil {
		<-s.talk.gone
	}
}

// read takes frames until the connection ends or one is malformed.
func (s *socket) read(ctx, identity context.Context) error {
	for {
		kind, data, err := s.conn.Read(ctx)
		switch {
		case s.ctx.Err() != nil:
			return context.Cause(s.ctx)
		case websocket.CloseStatus(err) == websocket.StatusNormalClosure || websocket.CloseStatus(err) == websocket.StatusGoingAway:
			return errLeft
		case err != nil:
			return fmt.Errorf("%w: %w", errLost, err)
		case kind != websocket.MessageText:
			return api.Errorf(codes.InvalidArgument, "a binary frame: want JSON in text frames")
		}
		if err := s.frame(identity, data); err != nil {
			return err
		}
	}
}

// frame carries out one frame.
func (s *socket) frame(identity context.Context, data []byte) error {
	f, err := parseFrame(data)
	if err != nil {
		return err
	}
	switch {
	case f.Call != "":
		return s.call(f)
	case f.Decisions != nil:
		d := &api.Decisions{}
		if err := readJSON(f.Decisions, d); err != nil {
			return err
		}
		return s.talk.answer(d)
	}
	if s.app != nil {
		return api.Errorf(codes.InvalidArgument, "a second hello: an app says it once")
	}
	h := &api.Hello{}
	if err := readJSON(f.Hello, h); err != nil {
		return err
	}
	a, welcome, err := s.o.converse(identity, s.talk, h)
	if err != nil {
		return err
	}
	s.app = a
	v := visitorOf(s.visit)
	v.app = a.info.Name
	s.visit = context.WithValue(s.visit, visitorKey{}, v)
	if err := s.send(&api.ToApp{Message: &api.ToApp_Welcome{Welcome: welcome}}); err != nil {
		return err
	}
	go func() {
		s.end(s.talk.write(a.ctx, func(p *api.Packets) error {
			return s.send(&api.ToApp{Message: &api.ToApp_Packets{Packets: p}})
		}))
	}()
	return nil
}

// parseFrame reads a frame that is exactly one of the three kinds.
func parseFrame(data []byte) (*frame, error) {
	f := &frame{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	err := d.Decode(f)
	if err == nil && d.More() {
		err = errors.New("more than one value in a frame")
	}
	kinds := 0
	for _, there := range []bool{f.Hello != nil, f.Decisions != nil, f.Call != ""} {
		if there {
			kinds++
		}
	}
	switch {
	case err != nil:
	case kinds != 1:
		err = errors.New(`want one of {"hello":…}, {"decisions":…} and {"id":…,"call":…,"request":…}`)
	case f.Call == "" && (f.ID != nil || f.Request != nil):
		err = errors.New("id and request are for calls")
	case f.Call != "" && f.ID == nil:
		err = errors.New("a call without an id")
	case f.ID != nil:
		if n, e := f.ID.Int64(); e != nil || n < 0 {
			err = fmt.Errorf("id %.40s: want a whole number from 0", *f.ID)
		}
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "frame: %w", err)
	}
	return f, nil
}

// call makes a call and sends its answer, without blocking later frames.
func (s *socket) call(f *frame) error {
	if err := s.rate.Wait(s.ctx); err != nil {
		return context.Cause(s.ctx)
	}
	select {
	case s.room <- struct{}{}:
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
	ctx := s.visit
	s.calls.Go(func() {
		defer func() { <-s.room }()
		resp, err := s.invoke(ctx, f)
		var text []byte
		if err == nil {
			var body []byte
			if body, err = written().Marshal(resp); err == nil {
				text = fmt.Appendf(nil, `{"id":%s,"response":%s}`, *f.ID, compact(body))
			}
		}
		if err != nil {
			text = fmt.Appendf(nil, `{"id":%s,"error":%s}`, *f.ID, failureOf(err))
		}
		if err := s.write(text); err != nil {
			s.end(err)
		}
	})
	return nil
}

func (s *socket) invoke(ctx context.Context, f *frame) (proto.Message, error) {
	req, err := s.o.calls.request(f.Call)
	if err != nil {
		return nil, err
	}
	if len(f.Request) > 0 && string(f.Request) != "null" {
		if err := readJSON(f.Request, req); err != nil {
			return nil, err
		}
	}
	return s.o.calls.do(ctx, f.Call, req)
}

// send writes a message as a frame.
func (s *socket) send(m *api.ToApp) error {
	text, err := written().Marshal(m)
	if err != nil {
		return err
	}
	return s.write(text)
}

// write writes a frame. It ignores the client's context, which would cut the
// connection before the client receives the reason.
func (s *socket) write(text []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return nil
}

// watch pings the client periodically.
func (s *socket) watch() {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
			ctx, cancel := context.WithTimeout(s.ctx, pingInterval)
			err := s.conn.Ping(ctx)
			cancel()
			if err != nil && s.ctx.Err() == nil {
				s.end(fmt.Errorf("%w: no answer to a ping: %w", errLost, err))
			}
		}
	}
}

// close sends the client the reason for its end, in a separate frame because a
// closing frame has room for only 123 bytes, and cuts the connection.
func (s *socket) close(cause error) {
	if errors.Is(cause, errLeft) || errors.Is(cause, errLost) {
		return
	}
	code := websocket.StatusPolicyViolation
	if errors.Is(cause, errStops) {
		code, cause = websocket.StatusGoingAway, api.Errorf(codes.Unavailable, "%w", cause)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"error":%s}`, failureOf(cause))) == nil {
		s.closeHandshake(code, cause.Error())
	}
}

// closeHandshake performs the closing handshake, for at most a second.
func (s *socket) closeHandshake(code websocket.StatusCode, reason string) {
	if len(reason) > 120 {
		reason = reason[:117] + "..."
	}
	said := make(chan struct{})
	go func() {
		_ = s.conn.Close(code, reason) // it is gone either way
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(time.Second):
		s.conn.CloseNow()
		<-said
	}
}
