package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// echo is one echo request that waits for its answer.
type echo struct {
	xid   uint32
	sent  time.Time
	round *echoRound
	at    int // index in the round
}

// echoes are the echo requests that others have asked one session to send.
type echoes struct {
	mu     sync.Mutex // guards what follows
	list   []echo
	closed bool
}

// echoesMax bounds the pending echo requests of one switch.
const echoesMax = 64

// echoDeadlineMax bounds how long a call waits for answers.
const echoDeadlineMax = time.Minute

// add records a request before it is sent.
func (e *echoes) add(one echo) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return admission.ErrClosed
	case len(e.list) >= echoesMax:
		return fmt.Errorf("%d echo requests to the switch wait already", echoesMax)
	}
	e.list = append(e.list, one)
	return nil
}

// answered takes the reply to a request, read an age ago, and returns how long
// the switch took; false if it is no reply to one of these. Waiting after the
// read is not the switch's doing.
func (e *echoes) answered(xid uint32, age time.Duration) (time.Duration, bool) {
	one, found := e.take(xid)
	if !found {
		return 0, false
	}
	took := max(0, time.Since(one.sent)-age)
	one.round.answered(one, took)
	return took, true
}

// take removes and returns a request.
func (e *echoes) take(xid uint32) (echo, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.list, func(one echo) bool { return one.xid == xid })
	if i < 0 {
		return echo{}, false
	}
	one := e.list[i]
	e.list = slices.Delete(e.list, i, i+1)
	return one, true
}

// oldest returns when the oldest pending request was sent, in ns; 0 if there is
// none.
func (e *echoes) oldest() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.list) == 0 {
		return 0
	}
	return e.list[0].sent.UnixNano()
}

// close ends all requests and refuses new ones.
func (e *echoes) close() {
	e.mu.Lock()
	list := e.list
	e.list, e.closed = nil, true
	e.mu.Unlock()
	for _, one := range list {
		one.round.failed(one.at, admission.ErrClosed.Error())
	}
}

// echoRound is one call: it sends an echo to each of many switches.
type echoRound struct {
	mu   sync.Mutex // guards what follows
	resp *api.EchoSwitchesResponse
	left int
	over bool
	done chan struct{} // closed when all have answered
}

func (r *echoRound) answered(one echo, took time.Duration) {
	r.set(one.at, &api.SwitchEcho{RttUs: uint64(max(1, took.Microseconds()))})
}

func (r *echoRound) failed(at int, text string) { r.set(at, &api.SwitchEcho{Error: text}) }

func (r *echoRound) set(at int, e *api.SwitchEcho) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.resp.Echoes[at] != nil {
		return
	}
	r.resp.Echoes[at] = e
	if r.left--; r.left == 0 {
		close(r.done)
	}
}

// end returns the response. Switches that have not answered by now have not
// answered in time.
func (r *echoRound) end(why string) *api.EchoSwitchesResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for i, e := range r.resp.Echoes {
		if e == nil {
			r.resp.Echoes[i] = &api.SwitchEcho{Error: why}
		}
	}
	return r.resp
}

// EchoSwitches answers api.EchoSwitches: it sends each switch an echo ahead of
// all queued messages, and returns when all have answered or the deadline is
// over (OpenFlow 1.3.5 §7.5.2).
func (h *Shared) EchoSwitches(ctx context.Context, req *api.EchoSwitchesRequest) (*api.EchoSwitchesResponse, error) {
	deadline := time.Duration(req.GetDeadlineUs()) * time.Microsecond
	if deadline <= 0 || deadline > echoDeadlineMax {
		return nil, api.Errorf(codes.InvalidArgument, "deadline_us: %d: want 1 to %d", req.GetDeadlineUs(), echoDeadlineMax.Microseconds())
	}
	n := len(req.GetDpids())
	r := &echoRound{resp: &api.EchoSwitchesResponse{Echoes: make([]*api.SwitchEcho, n)}, left: n, done: make(chan struct{})}
	if n == 0 {
		return r.resp, nil
	}
	asked := make([]*Session, n)
	xids := make([]uint32, n)
	for i, text := range req.Dpids {
		sw, err := flow.ParseDPID(text)
		if err != nil {
			r.failed(i, err.Error())
			continue
		}
		s := h.Session(sw)
		if s == nil {
			r.failed(i, admission.ErrClosed.Error())
			continue
		}
		asked[i], xids[i] = s, s.xid.Add(1)
		if err := s.alive.sendEcho(echo{xids[i], time.Now(), r, i}); err != nil {
			r.failed(i, err.Error())
		}
	}
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	why := fmt.Sprintf("no answer within %v", deadline)
	select {
	case <-r.done:
	case <-timer.C:
	case <-ctx.Done():
		why = "no answer: " + ctx.Err().Error()
	}
	for i, s := range asked {
		if s != nil {
			s.alive.echoes.take(xids[i])
		}
	}
	return r.end(why), nil
}

// sendEcho sends an echo request ahead of all queued messages.
func (l *liveness) sendEcho(e echo) error {
	if err := l.echoes.add(e); err != nil {
		return err
	}
	msg, err := l.Version.AppendEchoRequest(make([]byte, 0, 8), e.xid, nil)
	if err == nil {
		err = l.out.putFirst(msg)
	}
	if err != nil {
		l.echoes.take(e.xid)
	}
	return err
}
