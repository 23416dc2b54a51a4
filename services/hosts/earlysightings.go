package hosts

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A host often speaks once, when its port comes up, and then waits: before
// discovery knows what the port is. The first that speak there are noted, and
// learnt when it turns out to be an edge port. table.mu guards it.
type earlySightings map[flow.Location][]sighting

const (
	notedMost  = 8                       // hosts of a port
	notedPorts = 4096                    // ports
	notedFor   = int64(10 * time.Second) // a note counts
	notedGap   = int64(time.Second)      // in which a port makes notedMost notes at most
	notedRates = 1024                    // ports of a switch that a notebook counts
)

// A notebook bounds how many notes the ports of one switch make.
type noteLimiter map[flow.Port]noteRate

type noteRate struct {
	from int64
	n    int
}

// room reports whether a packet may be noted, and counts it.
func (b noteLimiter) room(in *flow.PacketIn) bool {
	r, known := b[in.Key.InPort]
	if in.Time-r.from > notedGap {
		r = noteRate{from: in.Time}
	}
	if r.n >= notedMost || !known && len(b) >= notedRates || in.Key.EthSrc.Multicast() || in.Key.EthSrc == (flow.MAC{}) {
		return false
	}
	r.n++
	b[in.Key.InPort] = r
	return true
}

// add notes a sighting.
func (e earlySightings) add(s sighting) {
	list, known := e[s.at]
	i := slices.IndexFunc(list, func(other sighting) bool { return other.who == s.who })
	switch {
	case i >= 0 && len(s.says) == 0: // what was noted says as much
		list[i].now = s.now
	case i >= 0:
		list[i] = s
	case len(list) < notedMost && (known || len(e) < notedPorts):
		e[s.at] = append(list, s)
	}
}

// learnNoted learns from the sightings noted at a port, as if they were made now, if
// the port has become an edge port. Probes wait for advance.
func (t *table) learnNoted(now int64, at flow.Location, edge bool) {
	list := t.noted[at]
	delete(t.noted, at)
	for _, s := range list {
		if h := t.index.host(s.who); !edge || now-s.now > notedFor || h != nil && h.seen.Load() > s.now {
			continue
		}
		s.now = now
		t.observeLocked(s, &t.asking)
	}
}
