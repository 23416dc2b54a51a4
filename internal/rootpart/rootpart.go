// Package rootpart lets a controller that was started as root, and runs as
// another user, ask its small root part for privileged operations. A question
// is a verb from a fixed set with its arguments, which the verb checks.
// cmd/weft answers; services and the supervisor ask.
package rootpart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/internal/shares"
)

// Variable is the environment variable with the path of the socket.
const Variable = "WEFT_ROOT_PART"

// Path returns the socket of the root part; empty if there is none, because the
// controller was not started as root, or runs as root.
func Path() string {
	if os.Geteuid() == 0 {
		return ""
	}
	return os.Getenv(Variable)
}

// A Verb performs an operation. Its error is passed on as text. An answer that is
// an *os.File goes to who asks by AskFile, and is closed here.
type Verb func(ctx context.Context, request json.RawMessage) (answer any, err error)

// Limits of one question and its answer.
const (
	longest  = 64 << 10 // bytes
	patience = 10 * time.Second
)

// Limits of all questions. A connection takes part in connections until it is closed,
// and in calls while its verb is carried out.
const (
	connections = 64
	calls       = 16
	waiting     = connections
)

type question struct {
	Verb    string          `json:"verb"`
	Request json.RawMessage `json:"request"`
}

type reply struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Server answers questions.
type Server struct {
	UID     int // whose processes it answers, besides root's; it does not answer others
	Verbs   map[string]Verb
	Evicted func() // counts connections that asked nothing and were closed for others; may be nil
}

// Serve answers until the listener is closed.
func (s Server) Serve(l net.Listener) error {
	what := "connections to the part of the controller that is root"
	x := &serving{
		verbs:       s.Verbs,
		connections: shares.New(shares.Limits{What: what, Places: connections, Evicted: s.Evicted}),
		calls:       shares.New(shares.Limits{What: "calls of the part of the controller that is root", Places: calls, Waiting: waiting, WaitingPerClient: waiting}),
	}
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			time.Sleep(10 * time.Millisecond) // such as too many open files
			continue
		}
		who, err := localsocket.Owner(conn)
		if err != nil || who != 0 && who != s.UID {
			conn.Close()
			continue
		}
		client := shares.Client{Name: fmt.Sprintf("user %d", who), Rank: shares.Operator}
		if who == 0 {
			client.Rank = shares.Administrator
		}
		place, err := x.connections.TryAcquire(client, func(why error) {
			go func() {
				fail(conn, why)
				conn.Close()
			}()
		})
		if err != nil {
			go func() {
				fail(conn, err)
				conn.Close()
			}()
			continue
		}
		place.SetIdle(true)
		go func() {
			defer place.Release()
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience)) // without one, it ends when the client does
			x.answer(conn, client, place)
		}()
	}
}

// serving is a Server that serves.
type serving struct {
	verbs              map[string]Verb
	connections, calls *shares.Places
}

// failTime bounds how long a client may take to accept why it is refused.
const failTime = 100 * time.Millisecond

// fail answers with an error.
func fail(conn net.Conn, why error) {
	_ = conn.SetDeadline(time.Now().Add(failTime))
	_ = json.NewEncoder(conn).Encode(reply{Error: why.Error()}) // the client may be gone
}

func (s *serving) answer(conn net.Conn, client shares.Client, place *shares.Place) {
	var q question
	if err := json.NewDecoder(io.LimitReader(conn, longest)).Decode(&q); err != nil {
		return
	}
	place.SetIdle(false)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var r reply
	if verb := s.verbs[q.Verb]; verb == nil {
		r.Error = fmt.Sprintf("%.20q is nothing that the part of the controller that is root does", q.Verb)
	} else if a, err := s.do(ctx, client, verb, q.Request); err != nil {
		r.Error = err.Error()
	} else if f, ok := a.(*os.File); ok {
		if u, ok := conn.(*net.UnixConn); ok {
			send(u, reply{Answer: json.RawMessage("{}")}, f)
			return
		}
		f.Close()
		r.Error = "a file can go by a socket of this machine only"
	} else if r.Answer, err = json.Marshal(a); err != nil {
		r = reply{Error: err.Error()}
	}
	place.SetIdle(true)
	_ = json.NewEncoder(conn).Encode(r) // the client may be gone
}

// do carries a verb out once it is the client's turn.
func (s *serving) do(ctx context.Context, client shares.Client, verb Verb, request json.RawMessage) (any, error) {
	call, err := s.calls.Acquire(ctx, client, nil)
	if err != nil {
		return nil, err
	}
	defer call.Release()
	return verb(ctx, request)
}

// send writes an answer whose file goes with it.
func send(conn *net.UnixConn, r reply, f *os.File) {
	defer f.Close()
	text, err := json.Marshal(r)
	if err != nil {
		return
	}
	_, _, _ = conn.WriteMsgUnix(text, unix.UnixRights(int(f.Fd())), nil) // the client may be gone
}

// Ask sends a verb and its request to the root part at path and reads the answer.
func Ask(ctx context.Context, path, verb string, request, answer any) error {
	return ask(ctx, path, verb, request, func(conn *net.UnixConn) ([]byte, error) {
		return io.ReadAll(io.LimitReader(conn, longest))
	}, answer)
}

// AskFile is Ask for a verb whose answer is a file.
func AskFile(ctx context.Context, path, verb string, request any) (*os.File, error) {
	var f *os.File
	err := ask(ctx, path, verb, request, func(conn *net.UnixConn) ([]byte, error) {
		text, beside := make([]byte, longest), make([]byte, unix.CmsgSpace(4))
		n, o, _, _, err := conn.ReadMsgUnix(text, beside)
		if err != nil {
			return nil, err
		}
		messages, _ := unix.ParseSocketControlMessage(beside[:o])
		for i := range messages {
			fds, _ := unix.ParseUnixRights(&messages[i])
			for _, fd := range fds {
				unix.CloseOnExec(fd)
				f = os.NewFile(uintptr(fd), verb)
			}
		}
		return text[:n], nil
	}, &struct{}{})
	if err == nil && f == nil {
		err = errors.New("the part of the controller that is root sent no file")
	}
	if err != nil && f != nil {
		f.Close()
		f = nil
	}
	return f, err
}

func ask(ctx context.Context, path, verb string, request any, read func(*net.UnixConn) ([]byte, error), answer any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("the part of the controller that is root does not answer: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var r reply
	err = json.NewEncoder(conn).Encode(question{verb, text})
	if err == nil {
		text, err = read(conn.(*net.UnixConn))
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the part of the controller that is root does not answer: %w", err)
	case r.Error != "":
		return errors.New(r.Error)
	}
	return json.Unmarshal(r.Answer, answer)
}
