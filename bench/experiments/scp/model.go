package scp

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weft-sdn/weft/bench/sim/httpload"
)

// model is the paper's simulation (section IV.B): subscribers attach, stay and
// detach, and of the packets between NFs some go through the controller. A
// message is a packet.
type model struct {
	arrivals httpload.Arrivals
	validity time.Duration // how long a consumer keeps what it has discovered
	timeout  time.Duration // after which an entry ends, however much it is used
	stay     time.Duration // attached
	length   time.Duration // of the simulation
}

// What the paper's simulation had.
const (
	modelValidity = 10 * time.Second
	modelTimeout  = 20 * time.Second
	modelStay     = time.Minute
	modelLength   = time.Hour
)

// packets is how many there were, and how many of them went through the
// controller.
type packets struct{ all, through int }

// percent is the share of those that went through the controller.
func (p packets) percent() float64 { return 100 * float64(p.through) / float64(p.all) }

// peer is an NF type that the AMF talks to.
type peer int

// The AMF's peers.
const (
	ausf peer = iota
	smf
	peers
)

// request is one that the AMF sends, and whose answer it gets.
type request struct {
	at time.Duration
	to peer
}

// The requests of an attachment: authentication and location update, session and
// modify bearer; and of a detachment, which is one.
func attachment() []peer { return []peer{ausf, ausf, smf, smf} }
func detachment() []peer { return []peer{smf} }

// mostThink bounds the time from a request to the next of the same subscriber.
const mostThink = 20 * time.Millisecond

// requests returns what the AMF sends, in the order of time.
func (m model) requests(draw *rand.Rand) (list []request) {
	send := func(at time.Duration, to []peer) {
		for _, p := range to {
			if at < m.length {
				list = append(list, request{at, p})
			}
			at += time.Duration(draw.Int64N(int64(mostThink)))
		}
	}
	phase := time.Duration(draw.Float64() / m.arrivals.Rate * float64(time.Second))
	for at := range m.arrivals.Times() {
		if at += phase; at >= m.length {
			break
		}
		send(at, attachment())
		send(at+m.stay, detachment())
	}
	slices.SortStableFunc(list, func(a, b request) int { return int(a.at - b.at) })
	return list
}

// run simulates. The packets to and from the NRF go through the controller, and
// those of a pair of NFs that meet no entry: there is one for each way.
func (m model) run(draw *rand.Rand) (p packets) {
	const registrations = 3 // of AMF, AUSF and SMF
	p.all, p.through = 2*registrations, 2*registrations
	var known, there, back [peers]time.Duration // until when
	through := func(until *time.Duration, at time.Duration) {
		p.all++
		if at >= *until {
			p.through++
			*until = at + m.timeout
		}
	}
	for _, r := range m.requests(draw) {
		if r.at >= known[r.to] {
			known[r.to] = r.at + m.validity
			p.all += 2
			p.through += 2
		}
		through(&there[r.to], r.at)
		through(&back[r.to], r.at)
	}
	return p
}
