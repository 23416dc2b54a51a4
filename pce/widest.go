package pce

import "slices"

// widest returns what find finds, for the largest bandwidth that is not booked on any link of it, as a demand
// for Widest has it: as is makes it, or, where that much is booked everywhere, what meets the demand.
func widest[T any](g *Graph, d *Demand, find func(*Demand) (T, error), is func(T) T) (T, error) {
	plain := *d
	plain.Minimise = LeastCost
	best, err := find(&plain)
	if err != nil {
		return best, err
	}
	var free []uint64 // that is more than is asked for, each once
	for i := range g.Links {
		if f := g.Links[i].Free(Priorities - 1); f > d.Bandwidth {
			free = append(free, f)
		}
	}
	slices.Sort(free)
	free = slices.Compact(free)
	plain.Setup, plain.Hold = Priorities-1, min(d.Hold, Priorities-1)
	for low, high := 0, len(free); low < high; { // what is found with more is found with less
		middle := (low + high) / 2
		plain.Bandwidth = free[middle]
		if wide, err := find(&plain); err == nil {
			best, low = is(wide), middle+1
		} else {
			high = middle
		}
	}
	return best, nil
}
