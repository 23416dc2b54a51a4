package packets

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// session is the way of one session's packets through the stages in other
// processes (Crossing).
type session struct {
	lanes   *Lanes
	owner   *local.Service // the southbound, which opened the session
	sw      flow.DPID
	number  uint64 // of the session
	later   weft.Later
	handing sync.Mutex // held while later is called: packets and probes use different lanes
	closed  atomic.Bool

	rest   []string // the stages ahead
	lane   *lane
	taps   []*tap // to observers
	batch  *batch // packets to send; nil if there are none
	probes *batch // the same, of probes

	away atomic.Int64  // packets in flight
	back atomic.Uint64 // packets that came back
	seen atomic.Uint64 // of back: probes
}

// Open opens the way of a session of a switch through other processes.
func (c *Lanes) Open(owner *local.Service, sw flow.DPID, later weft.Later) local.Crossing {
	number := c.last.Add(1)
	return &session{lanes: c, owner: owner, sw: sw, number: number, later: later, lane: &c.lanes[number%laneCount]}
}

// Route sets the stages ahead (Crossing).
func (s *session) Route(rest []string) (observed bool) {
	s.rest, s.taps = rest, nil
	if list := s.lanes.taps.Load(); list != nil {
		s.taps = *list
	}
	return len(s.taps) > 0
}

// Observe copies a packet to the observers (Crossing).
func (s *session) Observe(in *flow.PacketIn) {
	for _, t := range s.taps {
		t.put(s.number, in)
	}
}

// Send adds a packet to those for the stages ahead (Crossing).
func (s *session) Send(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	to, lane := &s.batch, s.lane
	if in.Key.EthType == flow.EthTypeLLDP {
		to, lane = &s.probes, s.lanes.probes()
	}
	if *to == nil {
		*to = lane.begin(s.rest)
	}
	if err := (*to).add(s, s.number, in, d, in.Time); err != nil {
		s.owner.Log.Error("packet-in cannot be sent to another process", "error", err)
		return flow.Drop
	}
	if len((*to).data) >= batchFull {
		s.Flush()
	}
	s.away.Add(1)
	return flow.Away
}

// Flush sends the collected packets (Crossing).
func (s *session) Flush() {
	if s.probes != nil {
		s.lanes.probes().send(s.probes)
		s.probes = nil
	}
	if s.batch != nil {
		s.lane.send(s.batch)
		s.batch = nil
	}
}

// Returned returns how many packets have come back, and how many of them were
// probes (Crossing).
func (s *session) Returned() (all, probes uint64) {
	all = s.back.Load()
	return all, min(all, s.seen.Load())
}

// returns counts packets that came back.
func (s *session) returns(n uint64, probes bool) {
	if probes {
		s.seen.Add(n) // before back: rather too many probes than too many others
	}
	s.back.Add(n)
}

// Away returns how many packets are in flight (Crossing).
func (s *session) Away() int64 { return s.away.Load() }

// deliver delivers a decision to the session, or nil at the end of a series.
func (s *session) deliver(d *flow.Decision) {
	s.handing.Lock()
	s.later(d)
	s.handing.Unlock()
}

// Apply applies the part of a decision that is for switches of other partitions
// (Crossing).
func (s *session) Apply(d *flow.Decision) {
	if failures := s.lanes.Apply(s.owner, s.sw, d); len(failures) > 0 {
		s.lanes.astray.Add(float64(len(failures)))
		s.owner.Log.Debug("operations of a decision are not carried out", "operations", len(failures), "first", failures[0].Text)
	}
}

// Close ends the session (Crossing).
func (s *session) Close() { s.closed.Store(true) }

// traceCrossing records spans for a batch's traced packets that went to another
// process and back.
func traceCrossing(recorder *local.Recorder, p *batch, list []int, t *members.Target, began time.Time) {
	ended := time.Now()
	to, transport := "", plan.Inproc
	if t.Peer != nil {
		to, transport = t.Peer.Entry.Load().Process, t.Peer.TransportOf(members.PacketsMethod)
	}
	for _, i := range list {
		if r := &p.records[i]; r.trace != 0 {
			recorder.Span(local.Span{Trace: r.trace, Name: "crossing to " + p.rest[0], Verdict: r.verdict, Began: began, Ended: ended, To: to, Transport: transport})
		}
	}
}
