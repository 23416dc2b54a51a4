package packets

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
)

// Bounds of the copies that wait for one process, and of the time to send them.
const (
	tapPackets = 1 << 12
	tapBytes   = 4 << 20
	tapTimeout = time.Second
)

// tap sends copies of packet-ins to one process with observers, off the packet
// path. It drops and counts the packets that it has no room for.
type tap struct {
	lanes   *Lanes
	process string
	peer    *members.Peer // nil: this process
	wake    local.Signal  // there are packets
	stop    context.CancelFunc

	mu    sync.Mutex // guards what follows
	batch *batch
	spare *batch
	none  flow.Decision // there is none yet
	drops int
}

// SetObservers makes a tap for every process with observers: this one, whose
// peer is nil, or others.
func (c *Lanes) SetObservers(want map[string]*members.Peer) {
	var old, list []*tap
	if taps := c.taps.Load(); taps != nil {
		old = *taps
	}
	for _, t := range old {
		if p, ok := want[t.process]; ok && p == t.peer {
			list = append(list, t)
			delete(want, t.process)
		} else {
			t.stop()
		}
	}
	for process, p := range want {
		ctx, stop := context.WithCancel(context.Background())
		t := &tap{lanes: c, process: process, peer: p, wake: local.NewSignal(), stop: stop, batch: &batch{}, spare: &batch{}}
		t.batch.begin(c.Self, nil)
		list = append(list, t)
		go t.run(ctx)
	}
	if !slices.Equal(list, old) {
		c.taps.Store(&list)
		c.Worker.Refresh()
	}
}

// put adds a copy of a packet.
func (t *tap) put(session uint64, in *flow.PacketIn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.batch.records) >= tapPackets || len(t.batch.data) >= tapBytes {
		t.drops++
		return
	}
	if t.batch.add(nil, session, in, &t.none, in.Time) != nil {
		t.drops++
		return
	}
	t.wake.Notify()
}

// run sends the queued copies until the tap is stopped.
func (t *tap) run(ctx context.Context) {
	for {
		select {
		case <-t.wake:
		case <-ctx.Done():
			return
		}
		t.mu.Lock()
		p, drops := t.batch, t.drops
		t.batch, t.drops = t.spare, 0
		t.batch.begin(t.lanes.Self, nil)
		t.mu.Unlock()
		if err := t.send(ctx, p.data); err != nil {
			drops += len(p.records)
		}
		t.lanes.dropped.Add(float64(drops))
		p.reset()
		t.mu.Lock()
		t.spare = p
		t.mu.Unlock()
	}
}

func (t *tap) send(ctx context.Context, request []byte) error {
	if t.peer == nil {
		_, err := t.lanes.Observed(ctx, request)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tapTimeout)
	defer cancel()
	answer, err := t.peer.Send(ctx, members.ObserveMethod, &members.Stamp{Wiring: t.lanes.Links.View.Load().Wiring()}, request)
	if err == nil && (len(answer) == 0 || answer[0] != members.AnswerOK) {
		err = members.ErrNotHere
	}
	return err
}

// Observed passes copies of packet-ins to the observers attached here.
func (c *Lanes) Observed(ctx context.Context, request []byte) ([]byte, error) {
	r := members.Cursor{B: request}
	_, _ = r.Uint64(), r.Strings()
	if r.Err != nil {
		return nil, r.Err
	}
	b, err := readBundle(&r)
	if err != nil {
		return nil, err
	}
	for _, app := range c.Observers() {
		if err := app.Packets(ctx, b.list); err != nil {
			c.Log.Debug("observer has not taken packets", "app", app.Name(), "error", err)
		}
	}
	return []byte{members.AnswerOK}, nil
}
