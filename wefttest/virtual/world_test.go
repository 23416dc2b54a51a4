package virtual

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// retry is how long a switch waits before it connects again, a little more than
// that, and longer up to retryMost where it is refused.
const (
	retry     = 900 * time.Millisecond
	retryMost = 8 * time.Second
)

// ports is how many ports a switch has.
const ports = 30

// world is a controller and its network, in one bubble.
type world struct {
	t         testing.TB
	seed      uint64
	began     time.Time
	chance    *chance
	net       *oftest.Network
	wires     *wires
	bus       *bus
	paths     *paths
	cluster   *cluster
	addresses []string // where switches connect
	devices   []*device
	stations  []*station
	links     []*cable
	plans     []layout
	kind      kind // of the storm
	layout    layout
	ordinary  oftest.Config   // of a switch
	managed   *managed        // nil: the services of policies do not run
	befallen  int             // faults of the storm so far
	befell    []string        // faults of all storms: STORM.NUMBER
	only      map[string]bool // which there are; nil: all
	failure   error           // what has been found while it lasted; guarded by mu
	wishes    *wishes
	life      context.Context // lasts until the schedule is over
	quiet     func()          // ends what hosts say to each other by themselves
	final     finalState      // at the end of the schedule; nil if it has failed
	storms    int             // how many there are; 0: as many as come in time
	blown     int             // storms that are over
	work      sync.WaitGroup  // of goroutines of the test's own
	storm     sync.WaitGroup  // of those of the storm
	pings     atomic.Uint64

	trace trace

	mu    sync.Mutex // guards story
	story bytes.Buffer
	logs  syncBuffer
}

// device is a switch and whether it is there.
type device struct {
	*oftest.Device
	sw     flow.DPID
	next   flow.Port   // that has not been in use
	spare  []flow.Port // that are so no more
	unplug context.CancelFunc
	off    bool
}

// cable is a link between two switches.
type cable struct {
	a, b flow.Location
	cut  bool
	mute bool // a's frames get lost
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.b, "%9.3f ", time.Since(epoch).Seconds())
	return s.b.Write(p)
}

// epoch is when time begins in a bubble.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, seed: seed, began: time.Now(), chance: newChance(seed, 1), wires: &wires{listeners: map[string]*socket{}, until: map[flow.DPID]time.Time{}}}
	w.wires.trace = &w.trace
	w.net = oftest.NewNetwork(time.Now)
	w.bus, w.paths = newBus(newChance(seed, 2), &w.trace), newPaths(newChance(seed, 3), &w.trace)
	w.cluster = &cluster{w: w, log: &w.logs, processes: map[string]*process{}, skews: func() time.Duration { return 0 }}
	w.plans, w.wishes = layouts, newWishes()
	w.addresses = []string{"127.0.0.1:6653", "127.0.0.1:6654"}
	return w
}

// logf notes what the test has done, with the time.
func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.story, "%9.3f ", time.Since(w.began).Seconds())
	fmt.Fprintf(&w.story, format+"\n", args...)
}

// fail notes what must not be, found during a storm.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = errors.Join(w.failure, fmt.Errorf(format, args...))
}

// addSwitch adds a switch all of whose ports are down.
func (w *world) addSwitch() *device { return w.addSwitchAs(w.ordinary) }

// addSwitchAs adds a switch as cfg has it, as far as all are not the same.
func (w *world) addSwitchAs(cfg oftest.Config) *device {
	sw := flow.DPID(len(w.devices) + 1)
	if cfg.DPID, cfg.Ports = sw, max(ports, cfg.Ports); cfg.Tables == 0 {
		cfg.Tables, cfg.Versions = 64, []openflow.Version{openflow.V13}
	}
	d := &device{Device: w.net.Add(cfg), sw: sw, next: 1}
	for p := flow.Port(1); p <= ports; p++ {
		d.SetLink(p, false)
	}
	w.devices = append(w.devices, d)
	if w.managed != nil {
		w.attach(d)
	}
	return d
}

// port returns a port that is not in use.
func (d *device) port() flow.Location {
	at := flow.Location{Switch: d.sw, Port: d.next}
	d.next++
	return at
}

// addLink joins two switches.
func (w *world) addLink(a, b *device) *cable {
	c := &cable{a: a.port(), b: b.port()}
	w.net.Link(c.a, c.b)
	w.net.Mend(c.a)
	w.links = append(w.links, c)
	return c
}

// addStation attaches a host to a switch.
func (w *world) addStation(d *device) *station {
	s := newStation(len(w.stations), &w.trace)
	at := d.port()
	s.Host = w.net.Host(at, s.answer)
	d.SetLink(at.Port, true)
	w.stations = append(w.stations, s)
	return s
}

func (w *world) device(sw flow.DPID) *device { return w.devices[sw-1] }

// powerOn has a switch connect to the controller.
func (w *world) powerOn(ctx context.Context, d *device) {
	own, cancel := context.WithCancel(ctx)
	d.unplug, d.off = cancel, false
	w.plug(own, d)
}

// number numbers pings.
func (w *world) number() uint64 { return w.pings.Add(1) }
