package discovery

import (
	"slices"
	"time"
)

// A pace bounds the probes that come in addition to those of links that are up
// in their turn: of ports whose neighbour is not known, and of links in doubt.
// Where a large network connects at once, all ports want to send some; what is
// sent then faster than it can be dealt with arrives too late to be believed, and
// has to be sent again.
type pace struct {
	seeking float64 // probes of ports without a link that may be sent
	doubts  float64 // probes of links in doubt that may be sent
	at      int64   // when these were brought up to date
	waiting []*port // without a link, whose turn it is and who may not send yet, in order
}

const (
	// seekingShare and doubtsShare are how many there may be in a second, as
	// multiples of Config.ProbesPerSecond.
	seekingShare = 2
	doubtsShare  = 0.5
	// paceLeast is the least number in a second.
	paceLeast = 1000
	// paceSaved is for how long what may be sent is saved.
	paceSaved = 250 * time.Millisecond
	// paceStrain is from what strain on there are fewer, in proportion.
	paceStrain = strain(100 * time.Millisecond)
	// paceAgain is how long a probe of a link in doubt waits that may not be sent.
	paceAgain = int64(200 * time.Millisecond)
)

// fill brings up to date what may be sent.
func (p *pace) fill(now int64, perSecond int, s strain) {
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

// wait has a port send as soon as it may, after those that wait already.
func (p *pace) wait(of *port) {
	if !of.waits {
		of.waits = true
		p.waiting = append(p.waiting, of)
	}
}

// serve appends the probes of those that have waited, as many as may be sent.
func (p *pace) serve(now int64, jobs []job) []job {
	n := 0
	for ; n < len(p.waiting) && p.seeking >= 1; n++ {
		of := p.waiting[n]
		of.waits = false
		if of.alive() && of.out == nil {
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
