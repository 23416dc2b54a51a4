package discovery

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A pace bounds the probes beyond the regular ones of links that are up: those
// of ports with an unknown neighbour, and of links in doubt. When a large
// network connects at once, all ports want to send some. Probes that are sent
// faster than they can be handled arrive too late to count, and must be sent
// again.
type pace struct {
	seeking float64 // probes of ports without a link that may be sent
	doubts  float64 // probes of links in doubt that may be sent
	at      int64   // when these were last updated
	waiting []*port // ports without a link that are due but must wait, in order
}

const (
	// seekingShare and doubtsShare are the rates per second, as multiples of
	// Config.ProbesPerSecond.
	seekingShare = 2
	doubtsShare  = 0.5
	// paceLeast is the least rate per second.
	paceLeast = 1000
	// paceSaved is how long unused allowance is saved.
	paceSaved = 250 * time.Millisecond
	// paceStrain is the strain above which the rates fall in proportion.
	paceStrain = ownDelay(100 * time.Millisecond)
	// paceAgain is how long a postponed probe of a link in doubt waits.
	paceAgain = int64(200 * time.Millisecond)
)

// fill adds the allowance since the last call.
func (p *pace) fill(now int64, perSecond int, s ownDelay) {
	passed := time.Duration(now - p.at).Seconds()
	p.at = now
	for left, share := range map[*float64]float64{&p.seeking: seekingShare, &p.doubts: doubtsShare} {
		rate := max(share*float64(perSecond), paceLeast)
		most := rate * paceSaved.Seconds()
		if s > paceStrain {
			rate = max(rate*float64(paceStrain)/float64(s), paceLeast)
		}
		*left = min(*left+rate*passed, most)
	}
}

// take reports whether a probe of a port may be sent now, and counts it.
func (p *pace) take(of *port) bool {
	left := &p.seeking
	if of.out != nil {
		left = &p.doubts
	}
	if *left < 1 || of.out == nil && len(p.waiting) > 0 {
		return false
	}
	*left--
	return true
}

// wait queues a port behind those that already wait.
func (p *pace) wait(of *port) {
	if !of.waits {
		of.waits = true
		p.waiting = append(p.waiting, of)
	}
}

// serve appends the probes of waiting ports, as many as the allowance permits.
func (p *pace) serve(now int64, jobs []job) []job {
	n := 0
	for ; n < len(p.waiting) && p.seeking >= 1; n++ {
		of := p.waiting[n]
		of.waits = false
		if of.isUp() && of.out == nil && !of.refusing.isSilenced(now) {
			p.seeking--
			jobs = of.send(now, true, jobs)
			if of.soon != 0 {
				of.dp.next = min(of.dp.next, of.soon)
			}
		}
	}
	p.waiting = slices.Delete(p.waiting, 0, n)
	return jobs
}

// A job is one probe to be sent.
type job struct {
	port    *port // only to hand back to the topology
	at      flow.Location
	frame   []byte
	actions []flow.Action
}

// send appends a probe of a port; an extra one is followed by others.
func (p *port) send(now int64, extra bool, jobs []job) []job {
	p.sent++
	p.refusing.probe(now)
	if extra {
		p.soon = 0
		if p.sent <= len(burstGaps) && p.out == nil {
			p.soon = now + burstGaps[p.sent-1]
		}
	}
	return append(jobs, job{p, p.at, p.frame, p.actions})
}
