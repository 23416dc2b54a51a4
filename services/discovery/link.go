package discovery

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// linkState is the state of a link in one direction.
type linkState uint8

// The states.
const (
	oneWay   linkState = iota // the other direction is not seen
	up                        // both directions are
	dampened                  // both directions are, and it goes down too often: the last choice
	waits                     // slower than a cable so far
	held                      // not used until its probes are faster or the operator allows it
)

// String returns the state as api.Link has it.
func (s linkState) String() string {
	return [...]string{"one_way", "up", "dampened", "waiting", "held"}[s]
}

// A link is a link in one direction, while its probes arrive: the out of its
// source port and the in of its destination port.
type link struct {
	src, dst *port
	flaps    *flaps
	state    linkState
	heard    int64  // when its last probe arrived
	since    int64  // of the state
	latency  int64  // smoothed, nanoseconds
	best     int64  // the time of the fastest probe
	lately   int64  // the same over at least the last probesLeast
	probes   int    // probes that arrived
	calm     int    // of these, while our own delays were small
	toll     uint32 // what its latency adds to its weight
	weight   uint32
	capacity uint64 // as last published
	trial    *trial // it is up on probation
	index    int    // in linkTable.links
}

// flaps is the flap damping of a pair of ports. A link that goes down more than
// Downs times in Window is dampened: it is the last choice of paths and of the
// broadcast tree until it has been up for the hold time, which doubles each
// time. It stays usable, because it may be the only way.
type flaps struct {
	pair  pair
	downs []int64 // times of the last downs, oldest first
	alive bool    // a direction has come up since the last down
	until int64   // dampened until then; 0 if not
	last  int64   // length of the last hold
	quiet int64   // since when it is not dampened
	mute  int64   // when probes, and not port status, last showed that it was down; 0: never
	links [2]*link
	total [2]uint32 // how often each direction has gone down
}

// A trial judges a link in one direction by how long its probes take. A relay
// delays every probe, a busy machine some of them. So the fastest probe
// decides, less the echo times of both switches.
//
// A link whose fastest probe is plausible comes up at once, and has no trial.
// One whose is not waits, and is probed again. Each further slow probe that no
// delay of our own explains adds to the evidence against it. With enough of it
// the link is held until a probe is fast or the operator allows it. Where our
// own delays explain the slow probes, the link comes up on probation, and the
// trial goes on.
type trial struct {
	from, to *port
	began    int64
	heard    int64   // when the last probe arrived
	best     int64   // the time of the fastest probe
	probes   int     // probes that arrived
	calm     int     // of these, while our own delays were small
	counted  int64   // arrival of the last one that is part of the evidence
	evidence float64 // bits: 2^-evidence is the probability of so many slow probes over a cable
	held     bool
	since    int64  // of waiting, or of being held
	reason   string // of being held
}

// onProbation reports whether the link is up on probation.
func (tr *trial) onProbation() bool { return tr.from.out != nil && tr.from.out.trial == tr }

// state returns the state of a link that is not up.
func (tr *trial) state() linkState {
	if tr.held {
		return held
	}
	return waits
}

// side numbers the direction that starts at src.
func (f *flaps) side(src flow.Location) int {
	if src == f.pair.a {
		return 0
	}
	return 1
}

func (f *flaps) hold(l *link)         { f.links[f.side(l.src.at)] = l }
func (f *flaps) release(l *link)      { f.links[f.side(l.src.at)] = nil }
func (f *flaps) count(l *link) uint32 { return f.total[f.side(l.src.at)] }

// wantedState returns the state that a link should have.
func (l *link) wantedState(now int64) linkState {
	switch back := l.dst.out; {
	case back == nil || back.dst != l.src:
		return oneWay
	case l.flaps.until > now:
		return dampened
	}
	return up
}

// doubtedUntil returns the time until which a link stays up because its switches
// are in doubt, or 0 if they are not.
func (l *link) doubtedUntil(now int64) int64 {
	if until := max(l.src.dp.doubt, l.dst.dp.doubt); until > now {
		return until
	}
	return 0
}

func rfc3339(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
