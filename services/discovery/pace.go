package discovery

import "time"

// A pace bounds the probes that come in addition to those of links that are up
// in their turn: of ports whose neighbour is not known, and of links in doubt.
// Where a large network connects at once, all ports want to send some; what is
// sent then faster than it can be dealt with arrives too late to be believed, and
// has to be sent again.
type pace struct {
	left  float64 // probes that may be sent
	kept  float64 // of these, those that are kept for ports whose neighbour is not known
	at    int64   // when left was brought up to date
	first int     // in the order of switches: where to go on
}

const (
	// paceOver is how many times as many as Config.ProbesPerSecond there may be.
	paceOver = 2
	// paceLeast is the least number in a second.
	paceLeast = 1000
	// paceSaved is for how long what may be sent is saved.
	paceSaved = 250 * time.Millisecond
	// paceStrain is from what strain on there are fewer, in proportion.
	paceStrain = strain(100 * time.Millisecond)
	// paceAgain is how long a probe waits that may not be sent.
	paceAgain = int64(200 * time.Millisecond)
)

// fill brings up to date what may be sent.
func (p *pace) fill(now int64, perSecond int, s strain) {
	rate := float64(max(paceOver*perSecond, paceLeast))
	most := rate * paceSaved.Seconds()
	if s > paceStrain {
		rate = max(rate*float64(paceStrain)/float64(s), paceLeast)
	}
	p.kept = most / 2
	p.left = min(p.left+rate*time.Duration(now-p.at).Seconds(), most)
	p.at = now
}

// take reports whether a probe of a port may be sent now, and counts it.
func (p *pace) take(of *port) bool {
	if p.left < 1 || of.out != nil && p.left < p.kept {
		return false
	}
	p.left--
	return true
}
