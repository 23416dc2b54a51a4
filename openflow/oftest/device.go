package oftest

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// Device is a switch for many goroutines: a Switch behind a lock, with a clock,
// connections to controllers, and faults. Its methods may be called at any
// time, but not from within the functions that it is given.
type Device struct {
	mu     *sync.Mutex // guards all that follows; that of the network if there is one
	sw     *Switch
	clock  func() time.Time // nil: time passes in Advance only
	net    *Network         // nil: frames go to out
	out    func(Frame)
	lines  map[int]*line
	faults Faults
}

// line is one connection as the device sees it. Its functions are called with
// the lock held and must not wait.
type line struct {
	receive func(msg []byte)
	close   func()
}

// Faults are the ways in which a device misbehaves, on all its connections.
type Faults struct {
	StopReading  bool          // it reads nothing from its controllers
	Silent       bool          // it reads, but neither acts nor answers nor says anything
	BarrierDelay time.Duration // it waits before each barrier, with all that follows
}

// NewDevice returns a device that goes by the real clock. Its frames go to
// out, which is called with the lock held; nil drops them. For devices that are
// joined by links see Network.
func NewDevice(cfg Config, out func(Frame)) *Device {
	if cfg.Now.IsZero() {
		cfg.Now = time.Now()
	}
	return &Device{mu: &sync.Mutex{}, sw: New(cfg), clock: time.Now, out: out, lines: map[int]*line{}}
}

// DPID returns the identity of the switch.
func (d *Device) DPID() flow.DPID { return d.sw.cfg.DPID }

// Do runs f on the switch and has its effects happen.
func (d *Device) Do(f func(*Switch) Effects) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clock != nil {
		d.route(d.sw.Advance(d.clock()), nil)
	}
	d.route(f(d.sw), nil)
	if d.net != nil {
		d.net.run()
	}
}

// Receive lets a frame come in at a port.
func (d *Device) Receive(p flow.Port, frame []byte) {
	d.Do(func(s *Switch) Effects { return s.Receive(p, frame) })
}

// SetLink gives a port its link or takes it away; of the network, this is the
// end of the switch only.
func (d *Device) SetLink(p flow.Port, up bool) {
	d.Do(func(s *Switch) Effects { return s.SetLink(p, up) })
}

// SetLive says whether a port counts as live, as Switch.SetLive does.
func (d *Device) SetLive(p flow.Port, live bool) {
	d.Do(func(s *Switch) Effects { return s.SetLive(p, live) })
}

// Flows returns the flow entries as Switch.Flows does.
func (d *Device) Flows() (list []openflow.FlowStats) {
	d.Do(func(s *Switch) Effects {
		list = s.Flows()
		return Effects{}
	})
	return list
}

// Groups returns the groups as Switch.Groups does.
func (d *Device) Groups() (list []flow.Group) {
	d.Do(func(s *Switch) Effects {
		list = s.Groups()
		return Effects{}
	})
	return list
}

// Meters returns the meters as Switch.Meters does.
func (d *Device) Meters() (list []flow.Meter) {
	d.Do(func(s *Switch) Effects {
		list = s.Meters()
		return Effects{}
	})
	return list
}

// SetFaults has the device misbehave from now on; the zero value ends it.
func (d *Device) SetFaults(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = f
}

// Say sends octets, well-formed or not, to all controllers as they are.
func (d *Device) Say(raw []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lines {
		l.receive(raw)
	}
}

// Disconnect closes all connections.
func (d *Device) Disconnect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.lines {
		d.hangUp(id)
	}
}

// Connections returns how many controllers are connected.
func (d *Device) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.lines)
}

// Attach connects a controller that is a function: receive is called with each
// message of the switch's, in order, with the device's lock held; it must not
// wait. What send is given goes to the switch, and detach ends the connection.
func (d *Device) Attach(receive func(msg []byte)) (send func(msg []byte), detach func()) {
	id := d.attach(&line{receive: receive, close: func() {}})
	send = func(msg []byte) { d.Do(func(s *Switch) Effects { return s.Message(id, msg) }) }
	detach = func() { d.detach(id) }
	return send, detach
}

func (d *Device) attach(l *line) (id int) {
	d.Do(func(s *Switch) (e Effects) {
		id, e = s.Connect()
		d.lines[id] = l
		return e
	})
	return id
}

func (d *Device) detach(id int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hangUp(id)
}

// hangUp ends a connection; the lock is held.
func (d *Device) hangUp(id int) {
	if l := d.lines[id]; l != nil {
		delete(d.lines, id)
		d.sw.Disconnect(id)
		l.close()
	}
}

// route has effects happen; from is where the frame that caused them arrived.
// The lock is held.
func (d *Device) route(e Effects, from *hop) {
	for _, m := range e.Messages {
		if l := d.lines[m.Conn]; l != nil && !d.faults.Silent {
			l.receive(m.Data)
		}
	}
	for _, f := range e.Frames {
		switch {
		case d.net != nil:
			d.net.emit(flow.Location{Switch: d.sw.cfg.DPID, Port: f.Port}, f.Data, from)
		case d.out != nil:
			d.out(f)
		}
	}
	for _, id := range e.Closed {
		d.hangUp(id)
	}
}

// Dial connects to a controller, such as "tcp", "127.0.0.1:6653", and serves
// the connection as Serve does.
func (d *Device) Dial(ctx context.Context, network, address string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return d.Serve(ctx, conn)
}

// Lose has the switch lose entries without a word.
func (d *Device) Lose(which func(*flow.Entry) bool) {
	d.Do(func(s *Switch) Effects {
		for i := range s.tables {
			s.tables[i].entries = slices.DeleteFunc(s.tables[i].entries, func(e *entry) bool { return which(&e.Entry) })
		}
		return Effects{}
	})
}
