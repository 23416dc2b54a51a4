package southbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/mastership"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// sharedLedger is a ledger in memory for several processes.
type sharedLedger struct {
	mu  sync.Mutex // guards what follows
	t   mastership.Tenure
	rev uint64
}

// process is one that may be master, with its way to the store and to the
// switches in the hands of the test.
type process struct {
	name, address string
	ledger        *sharedLedger
	cancel        context.CancelFunc
	ended         chan error
	hub           *hub
	mastership    *mastership.Mastership
	configure     func(*Config)                // nil: as it is
	adapt         func(*mastership.Mastership) // nil: as it is
	changed       func(*api.SwitchChanged)     // nil: to nobody
	answers       bool                         // every packet-in by a packet-out
	memory        []byte                       // that outlives it; nil: none does

	mu    sync.Mutex    // guards what follows
	awake chan struct{} // closed when it is; nil while it is
	cut   bool          // from the store
	late  time.Duration // answers of the store
	dead  bool
}

var errCut = errors.New("the store cannot be reached")

// here returns once the process is awake; it fails if it is dead.
func (p *process) here() error {
	for {
		p.mu.Lock()
		awake, dead := p.awake, p.dead
		p.mu.Unlock()
		switch {
		case dead:
			return admission.ErrClosed
		case awake == nil:
			return nil
		}
		<-awake
	}
}

func (p *process) sleep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awake == nil {
		p.awake = make(chan struct{})
	}
}

func (p *process) wakeUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awake != nil {
		close(p.awake)
		p.awake = nil
	}
}

func (p *process) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *process) trip(ctx context.Context) error {
	p.mu.Lock()
	cut, late := p.cut, p.late
	p.mu.Unlock()
	if cut {
		<-ctx.Done()
		return errCut
	}
	if late > 0 && backoff.Sleep(ctx, late) != nil {
		return ctx.Err()
	}
	return p.here()
}

func (p *process) Read(ctx context.Context) (mastership.Tenure, uint64, error) {
	if err := p.trip(ctx); err != nil {
		return mastership.Tenure{}, 0, err
	}
	p.ledger.mu.Lock()
	t, rev := p.ledger.t, p.ledger.rev
	p.ledger.mu.Unlock()
	return t, rev, p.trip(ctx)
}

func (p *process) Swap(ctx context.Context, t mastership.Tenure, over uint64) (uint64, bool, error) {
	if err := p.trip(ctx); err != nil {
		return 0, false, err
	}
	p.ledger.mu.Lock()
	done := p.ledger.rev == over
	if done {
		p.ledger.t, p.ledger.rev = t, over+1
	}
	rev := p.ledger.rev
	p.ledger.mu.Unlock()
	return rev, done, p.trip(ctx) // an answer that does not come back is of a write that may be done
}

func (p *process) Prove(ctx context.Context) error {
	if err := p.trip(ctx); err != nil {
		return err
	}
	return p.trip(ctx)
}

// sleepingListener and sleepingConn do nothing while their process sleeps, and
// then go on where they were.
type sleepingListener struct {
	net.Listener
	p *process
}

func (l sleepingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return sleepingConn{conn, l.p}, nil
}

type sleepingConn struct {
	net.Conn
	p *process
}

func (c sleepingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if e := c.p.here(); e != nil {
		return 0, e
	}
	return n, err
}

func (c sleepingConn) Write(b []byte) (int, error) {
	if err := c.p.here(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// begin starts the process: it programs all switches as fast as they confirm,
// whenever it takes itself for their master.
func (p *process) begin(t *testing.T, place int, switches []flow.DPID) {
	cfg := *defaults()
	cfg.Standbys, cfg.Standby, cfg.LeaseTime, cfg.LeaseRenew = 1, place, 240*time.Millisecond, 40*time.Millisecond
	cfg.EchoInterval, cfg.DeadAfter, cfg.ConfirmTimeout = 300*time.Millisecond, 800*time.Millisecond, 300*time.Millisecond
	if p.configure != nil {
		p.configure(&cfg)
	}
	log := slog.New(slog.DiscardHandler)
	m := mastership.New(p, cfg.terms(), mastership.Tenure{Holder: p.name, Run: fmt.Sprintf("%s %d", p.name, rand.Uint64())}, log)
	if p.adapt != nil {
		p.adapt(m)
	}
	h := newHub(cfg, m.Fence, log)
	h.Open = func(flow.DPID, func(*flow.Decision)) session.Pipeline {
		if p.answers {
			return echoing{}
		}
		return session.Idle{}
	}
	if p.memory != nil {
		h.OpenRecovery(p.memory)
	}
	h.SwitchChanged = func(e *api.SwitchChanged) {
		if p.changed != nil {
			p.changed(e)
		}
	}
	h.PortChanged = func(*api.PortChanged) {}
	h.FlowRemoved = func(*api.FlowRemoved) {}
	h.SwitchError = func(*api.SwitchError) {}
	h.onHigherGeneration = h.higherGenerationHandler(m)
	os.Remove(p.address)
	l, err := net.Listen("unix", p.address)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.set(func() {
		p.hub, p.mastership, p.cancel, p.ended, p.dead, p.cut, p.late = h, m, cancel, make(chan error, 1), false, false, 0
	})
	go func() {
		err := h.run(ctx, m, []listener{{Listener: sleepingListener{l, p}}}, func(context.Context) error { return nil })
		cancel()
		p.ended <- err
	}()
	go func() {
		for n := uint16(0); ctx.Err() == nil; n++ {
			d := &flow.Decision{}
			for _, sw := range switches {
				addFlow(d, sw, 1+n%1000)
			}
			_, _ = h.Apply(ctx, d)
			_ = backoff.Sleep(ctx, 2*time.Millisecond)
		}
	}()
}

// echoing is a pipeline that answers every packet-in by a packet-out of the same data.
type echoing struct{ session.Idle }

func (echoing) Packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	d.PacketOut(in.Switch, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Output(1), Data: in.Data})
	return flow.Done
}

// kill ends the process as kill -9 does: it says nothing to anybody.
func (p *process) kill() {
	p.set(func() { p.dead = true })
	p.wakeUp()
	p.hub.mu.Lock()
	for s := range p.hub.members {
		s.Conn.Close()
	}
	p.hub.mu.Unlock()
	p.cancel()
	<-p.ended
}
