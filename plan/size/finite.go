package size

import "math"

// Finite is the station with room for a number of packets, those in service
// included: the share of packets that are lost, and the mean time in the station
// of the others. The number of packets is taken to have a geometric tail that
// gives the mean of Sojourn without a limit (Buzacott and Shanthikumar), which is
// exact for M/M/1/K. It is for one server.
func (s Station) Finite(room int) (loss, sojourn float64) {
	rho, decay := s.Utilisation(), 0.0
	switch {
	case rho == 0:
		return 0, s.Service
	case rho < 1:
		decay = 1 - rho/(s.Rate*s.Sojourn())
	default: // as much more as at the same distance below 1
		mirrored := s
		mirrored.Rate = 1 / (rho * s.Service)
		if rho < 1+1e-6 {
			mirrored.Rate = (1 - 1e-6) / s.Service
		}
		below := mirrored.Utilisation()
		decay = 1 / max(1e-3, 1-below/(mirrored.Rate*mirrored.Sojourn()))
	}
	if room < 1 {
		return 1, 0
	}
	// packets that come find k with a probability of rho decay^(k-1), to 1-rho for none
	empty, tail, number := 1.0, 0.0, 0.0
	p := rho
	if rho < 1 {
		p = rho * (1 - decay) / (1 - rho)
	}
	for k := 1; k <= room; k++ {
		tail += p
		number += float64(k) * p
		p *= decay
		if tail > 1e200 {
			empty, tail, number, p = empty/1e200, tail/1e200, number/1e200, p/1e200
		}
	}
	busy := tail / (empty + tail)
	loss = max(0, 1-busy/rho)
	return loss, max(s.Service, number/(empty+tail)/(s.Rate*(1-loss)))
}

// Room returns how many packets there has to be room for such that at most a
// share of them is lost; 0 if no room is enough.
func (s Station) Room(loss float64) int {
	const most = 1 << 20
	for room := 1; room <= most; room *= 2 {
		if lost, _ := s.Finite(room); lost > loss {
			continue
		}
		low, high := room/2, room
		for high-low > 1 {
			middle := (low + high) / 2
			if lost, _ := s.Finite(middle); lost > loss {
				low = middle
			} else {
				high = middle
			}
		}
		return int(math.Max(1, float64(high)))
	}
	return 0
}
