package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// Load is traffic for the controller: packet-ins between hosts of the same
// switch, from every switch at once; or, with Flows, between hosts of the whole
// topology, each from the switch of its sender.
type Load struct {
	Flows      int           // pairs of hosts on different switches that send; 0 is hosts of the same switch
	Seed       uint64        // chooses the pairs
	Window     int           // packet-ins that a switch has outstanding at most: 1 to MaxWindow
	Rate       float64       // packet-ins per second over all switches; 0 is a closed loop: as fast as answers come
	Warm       time.Duration // of load before the measurement begins
	Duration   time.Duration // of the measurement
	Patience   time.Duration // after which a packet is given up; 0 is DefaultPatience
	Unbuffered bool          // send packets whole, without buffer_id: only a packet-out of the frame answers
	// Used, if any, returns what is used meanwhile, such as time of processors. It is called
	// as the measured time begins and ends, between two packets, and so must be quick.
	Used func() time.Duration
}

// DefaultPatience is how long an answer may take.
const DefaultPatience = 2 * time.Second

// Counts is what became of packet-ins and answers during a measurement.
type Counts struct {
	Sent     uint64 `json:"sent"`     // packet-ins
	Answered uint64 `json:"answered"` // packets answered: in a closed loop those whose answer came, at a rate those that were due, in the measured time
	Lost     uint64 `json:"lost"`     // packets given up: no answer came in time
	Unsent   uint64 `json:"unsent"`   // at a rate: packets that were due but found the window full to the end

	Duplicates uint64 `json:"duplicates"` // answers to packets answered before
	Late       uint64 `json:"late"`       // answers to packets given up
	Wrong      uint64 `json:"wrong"`      // answers to packets never sent by this switch
	Nameless   uint64 `json:"nameless"`   // flow-mods that name no packet: no answers, and no errors either; they are not installed

	ToHost    uint64 `json:"to_host"`   // answers that send the packet to the port of its destination
	Flooded   uint64 `json:"flooded"`   // answers that send it everywhere
	Elsewhere uint64 `json:"elsewhere"` // answers that send it to another port
	Nowhere   uint64 `json:"nowhere"`   // answers that send it to no port
}

// Add adds other counts to these.
func (c *Counts) Add(o Counts) {
	c.Sent += o.Sent
	c.Answered += o.Answered
	c.Lost += o.Lost
	c.Unsent += o.Unsent
	c.Duplicates += o.Duplicates
	c.Late += o.Late
	c.Wrong += o.Wrong
	c.Nameless += o.Nameless
	c.ToHost += o.ToHost
	c.Flooded += o.Flooded
	c.Elsewhere += o.Elsewhere
	c.Nowhere += o.Nowhere
}

// Result is a measurement.
type Result struct {
	Counts
	Elapsed time.Duration           // measured time
	Used    time.Duration           // in it, as Load.Used tells
	Latency *hdrhistogram.Histogram // nanoseconds from sending a packet-in, or from when it was due, to its answer
}

// AnswersPerSecond returns the rate of answers.
func (r *Result) AnswersPerSecond() float64 {
	return float64(r.Answered) / r.Elapsed.Seconds()
}

// NewHistogram returns an empty histogram as those of Result: 1 ns to 100 s,
// three significant digits.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 100e9, 3) }

// stage is where a load is in its life.
type stage uint8

const (
	stageWarm    stage = iota
	stageMeasure       // counted
	stageDrain         // nothing is sent any more; answers are awaited
	stageOver
)

// load is a load at work; the loop owns it.
type load struct {
	net    *Network
	conf   Load
	layout layout
	blank  []byte // packet-ins with all but what varies
	sum    uint32 // of the IPv4 header of a blank frame
	hello  bool   // announcements of the hosts instead of traffic

	senders int   // switches that send
	turn    []int // of each switch, which of them it is; -1: it does not

	stage    stage
	from, to int64         // measured time
	used     time.Duration // in it
	deadline int64         // of the drain
	nextLook int64         // for packets to give up
	counts   Counts
	latency  *hdrhistogram.Histogram
	sentRun  int64 // latency of equal packets not recorded yet
	runs     int64
	done     chan struct{}
}

func (l Load) check(n *Network) error {
	if l.Window < 1 || l.Window > MaxWindow {
		return fmt.Errorf("window of %d packet-ins: want 1 to %d", l.Window, MaxWindow)
	}
	if l.Flows < 0 {
		return fmt.Errorf("load of %d flows: want 0 or more", l.Flows)
	}
	if l.Rate < 0 || l.Duration <= 0 || l.Warm < 0 || l.Patience < 0 {
		return errors.New("load: rate, warm-up and patience must not be negative, and the duration must be more than zero")
	}
	if l.Flows > 0 {
		if h := n.cfg.Topology.Hosts; len(h) < 2 || h[0].At.Switch == h[len(h)-1].At.Switch {
			return errors.New("load of flows: the topology needs hosts on two switches at least")
		}
		return nil
	}
	for _, nd := range n.nodes {
		if nd.loud < 1 || !slices.ContainsFunc(nd.hosts, func(e endpoint) bool { return e.at != nd.hosts[0].at }) {
			return fmt.Errorf("load: switch %v needs at least two hosts on two ports, one of which sends", nd.dpid)
		}
	}
	return nil
}

// deal divides the load among the switches.
func (l *load) deal() {
	nodes := l.net.nodes
	l.turn = make([]int, len(nodes))
	for i, nd := range nodes {
		nd.gen.flows = nil
		l.turn[i] = i
	}
	l.senders = len(nodes)
	if l.conf.Flows == 0 {
		return
	}
	var hosts []*endpoint
	for _, nd := range nodes {
		for i := range nd.hosts {
			hosts = append(hosts, &nd.hosts[i])
		}
	}
	rng := rand.New(rand.NewPCG(l.conf.Seed, uint64(len(hosts))))
	for range l.conf.Flows {
		p := hostPair{src: hosts[rng.IntN(len(hosts))]}
		for p.dst == nil || p.dst.at>>16 == p.src.at>>16 {
			p.dst = hosts[rng.IntN(len(hosts))]
		}
		g := &nodes[p.src.at>>16].gen
		g.flows = append(g.flows, p)
	}
	l.senders = 0
	for i, nd := range nodes {
		l.turn[i] = -1
		if len(nd.gen.flows) > 0 {
			l.turn[i] = l.senders
			l.senders++
		}
	}
}

// newLoad prepares a load; call on the loop.
func (n *Network) newLoad(conf Load) *load {
	if conf.Patience == 0 {
		conf.Patience = DefaultPatience
	}
	l := &load{net: n, conf: conf, latency: NewHistogram(), done: make(chan struct{})}
	cookie := flow.Cookie(^uint64(0))
	if e := n.nodes[0].table.lookup(0, &flow.Key{}); e != nil {
		cookie = e.Cookie // of the table-miss entry
	}
	var one []byte
	l.layout, one = newLayout(n.cfg.Version, cookie)
	var frame []byte
	frame, l.sum = newFrame()
	copy(one[l.layout.frame:], frame)
	for range conf.Window {
		l.blank = append(l.blank, one...)
	}
	l.deal()
	return l
}

// begin starts a load; call on the loop.
func (l *load) begin() {
	n := l.net
	n.load = l
	l.from = n.now + int64(l.conf.Warm)
	l.to = l.from + int64(l.conf.Duration)
	for _, nd := range n.nodes {
		if nd.phase == phaseUp {
			l.join(nd)
		}
	}
}

// join lets a switch take part.
func (l *load) join(nd *node) {
	nd.track.expire(l.net.now+1, l.lost) // of a lost connection, or of a load that was cancelled
	nd.track.resize(l.conf.Window)
	nd.gen.begin(nd, l)
	nd.queue(nd.pending, nil)
}

// open reports whether packets are sent at a given rate.
func (l *load) open() bool { return l.conf.Rate > 0 && l.stage < stageDrain }

// until returns when step has something to do at the latest.
func (l *load) until() int64 {
	switch l.stage {
	case stageWarm:
		return l.from
	case stageMeasure:
		return min(l.to, l.nextLook)
	}
	return min(l.deadline, l.nextLook)
}

// step moves the load on in time.
func (l *load) step() {
	now := l.net.now
	switch {
	case l.stage == stageWarm && now >= l.from:
		l.stage = stageMeasure
		l.counts = Counts{}
		l.from = now
		l.to = now + int64(l.conf.Duration)
		if l.conf.Used != nil {
			l.used = -l.conf.Used()
		}
	case l.stage == stageMeasure && now >= l.to:
		l.stage = stageDrain
		if l.conf.Used != nil {
			l.used += l.conf.Used()
		}
		if l.conf.Rate == 0 {
			l.to = now
		}
		l.deadline = now + int64(l.conf.Patience)
		l.nextLook = now
	}
	if l.conf.Rate > 0 {
		for _, nd := range l.net.nodes {
			if nd.phase == phaseUp && l.owes(nd) && len(nd.pending) == 0 {
				nd.flush()
			}
		}
	}
	if now >= l.nextLook {
		l.nextLook = now + int64(min(sweepEvery, l.conf.Patience/4))
		if l.stage == stageDrain {
			l.nextLook = now + int64(time.Millisecond)
		}
		l.look()
	}
}

// owes reports whether a switch has a packet to send that was due, which it
// still sends when the measurement is over.
func (l *load) owes(nd *node) bool {
	return nd.gen.due <= l.net.now && (l.stage < stageDrain || nd.gen.due < l.to)
}

// look gives up packets that have waited too long, and ends the drain when
// nothing is outstanding.
func (l *load) look() {
	now := l.net.now
	before := now - int64(l.conf.Patience)
	ends := l.stage == stageDrain && now >= l.deadline
	if ends {
		before = now + 1
	}
	outstanding := 0
	for _, nd := range l.net.nodes {
		free := len(nd.track.free)
		nd.track.expire(before, l.lost)
		outstanding += nd.track.outstanding()
		if l.stage == stageDrain && l.conf.Rate > 0 && l.owes(nd) && !ends {
			outstanding++
		}
		if len(nd.track.free) > free {
			nd.queue(nd.pending, nil)
		}
	}
	if outstanding == 0 && (l.stage == stageDrain || l.hello && l.announced()) {
		l.finish()
	}
}

// announced reports whether all hosts have spoken.
func (l *load) announced() bool {
	for _, nd := range l.net.nodes {
		if nd.phase == phaseUp && nd.gen.next < len(nd.hosts) {
			return false
		}
	}
	return true
}

// lost counts a packet that was given up. At a rate its latency is at least
// the time it has waited.
func (l *load) lost(sent int64) {
	if l.conf.Rate > 0 {
		if sent >= l.from && sent < l.to && l.stage >= stageMeasure {
			l.counts.Lost++
			l.record(l.net.now-sent, 1)
		}
		return
	}
	if l.stage >= stageMeasure {
		l.counts.Lost++
	}
}

// finish ends the load.
func (l *load) finish() {
	if l.conf.Rate > 0 {
		for _, nd := range l.net.nodes {
			for ; nd.gen.every > 0 && nd.gen.due < l.to; nd.gen.due += nd.gen.every {
				if nd.gen.due >= l.from {
					l.counts.Unsent++
					l.record(l.net.now-nd.gen.due, 1)
				}
			}
		}
	}
	l.flushRun()
	l.stage = stageOver
	l.net.load = nil
	close(l.done)
}

// record adds to the histogram.
func (l *load) record(ns, times int64) {
	_ = l.latency.RecordValues(min(max(ns, 1), l.latency.HighestTrackableValue()), times)
}

// flushRun records the answers since the last different one.
func (l *load) flushRun() {
	if l.runs > 0 {
		l.record(l.sentRun, l.runs)
		l.runs = 0
	}
}

// settle takes an answer, which a switch was sent. A frame may be answered at
// another switch than that which it came from.
func (l *load) settle(by *node, a answer, msg []byte) {
	nd := by
	if a.kind == byFrame && a.owner < len(l.net.nodes) {
		nd = l.net.nodes[a.owner]
	}
	sl, v := nd.track.settle(a.id)
	c := &l.counts
	if v != verdictAnswer {
		l.reject(by, a, v, msg)
		return
	}
	if l.conf.Rate > 0 {
		if sl.sent < l.from || sl.sent >= l.to || l.stage == stageWarm {
			return
		}
	} else if l.stage != stageMeasure {
		return
	}
	c.Answered++
	switch {
	case place(by.index, a.out) == sl.to:
		c.ToHost++
	case a.out == flow.PortFlood:
		c.Flooded++
	case a.out == 0:
		c.Nowhere++
	default:
		c.Elsewhere++
	}
	// Packets of one batch, answered in one batch, have the same latency.
	if d := l.net.now - sl.sent; d == l.sentRun {
		l.runs++
	} else {
		l.flushRun()
		l.sentRun, l.runs = d, 1
	}
}

// reject counts a false answer, and refuses it as a switch does.
func (l *load) reject(nd *node, a answer, v verdict, msg []byte) {
	switch v {
	case verdictDuplicate:
		l.counts.Duplicates++
	case verdictLate:
		l.counts.Late++
	default:
		l.counts.Wrong++
		if a.kind == byBuffer {
			nd.refuseWith(msg, openflow.ErrBadRequest, openflow.BadRequestBufferUnknown)
		}
	}
}

// Measure puts a load on the controller and measures its answers. The switches
// must be up; see WaitUp.
func (n *Network) Measure(ctx context.Context, conf Load) (*Result, error) {
	if err := conf.check(n); err != nil {
		return nil, err
	}
	l, err := n.runLoad(ctx, conf, false)
	if err != nil {
		return nil, err
	}
	return &Result{Counts: l.counts, Elapsed: time.Duration(l.to - l.from), Used: l.used, Latency: l.latency}, nil
}

// Announce lets every host speak once, by an ARP announcement, so that the
// controller can learn where it is, and returns how many of these the
// controller answered. Not answering is no fault.
func (n *Network) Announce(ctx context.Context, window int, patience time.Duration) (hosts, answered int, err error) {
	conf := Load{Window: window, Duration: time.Hour, Patience: patience}
	if window < 1 || window > MaxWindow {
		return 0, 0, fmt.Errorf("window of %d announcements: want 1 to %d", window, MaxWindow)
	}
	l, err := n.runLoad(ctx, conf, true)
	if err != nil {
		return 0, 0, err
	}
	return len(n.cfg.Topology.Hosts), int(l.counts.Answered), nil
}

// runLoad runs a load to its end.
func (n *Network) runLoad(ctx context.Context, conf Load, hello bool) (*load, error) {
	var l *load
	busy := false
	err := n.call(ctx, func() {
		if busy = n.load != nil; busy {
			return
		}
		l = n.newLoad(conf)
		l.hello = hello
		l.begin()
	})
	if err != nil {
		return nil, err
	}
	if busy {
		return nil, errors.New("simulated network: a load is running already")
	}
	select {
	case <-l.done:
		return l, nil
	case <-n.done:
		return nil, ErrStopped
	case <-ctx.Done():
		_ = n.call(context.WithoutCancel(ctx), func() { n.load = nil })
		return nil, ctx.Err()
	}
}
