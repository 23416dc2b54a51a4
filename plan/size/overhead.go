package size

import (
	"fmt"
	"slices"
)

// MeasuredOverhead is what a packet costs more in N instances than in one: the
// time of processors, in all that it visits together, in seconds.
type MeasuredOverhead struct {
	N    int
	Time float64
}

// checkOverhead says what is wrong with overheads.
func checkOverhead(list []MeasuredOverhead) error {
	for i, o := range list {
		if o.N < 1 || o.N > Most || !(o.Time >= 0 && o.Time <= 3600) || i > 0 && o.N <= list[i-1].N {
			return fmt.Errorf("overhead %d:%v: want rising numbers of instances from 1 to %d, and times of at least 0, in ms, such as 2:0.01,16:0.2", o.N, o.Time*1e3, Most)
		}
	}
	return nil
}

// overheadOf is the overhead of n instances: on the line between the numbers
// that were measured, and beyond them on the line through the last two. One
// instance has none unless it was measured.
func overheadOf(list []MeasuredOverhead, n int) float64 {
	if len(list) == 0 {
		return 0
	}
	if list[0].N > 1 {
		list = slices.Insert(slices.Clone(list), 0, MeasuredOverhead{N: 1})
	}
	if len(list) == 1 {
		return list[0].Time
	}
	i, found := slices.BinarySearchFunc(list, n, func(o MeasuredOverhead, n int) int { return o.N - n })
	if found {
		return list[i].Time
	}
	i = min(max(i, 1), len(list)-1)
	a, b := list[i-1], list[i]
	return max(0, a.Time+(b.Time-a.Time)*float64(n-a.N)/float64(b.N-a.N))
}
