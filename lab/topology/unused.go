package topology

// unused finds numbers that nothing has, each search in about the time of a look-up,
// whatever numbers are taken. What is taken stays so.
type unused struct {
	taken func(int) bool
	after map[int]int // of a taken number: one before which, from there on, all are taken
}

func newUnused(taken func(int) bool) *unused { return &unused{taken, map[int]int{}} }

// from returns the first number that is not taken, from n on.
func (u *unused) from(n int) int {
	free := n
	for {
		if next, ok := u.after[free]; ok {
			free = next
		} else if !u.taken(free) {
			break
		} else {
			free++
		}
	}
	for n < free {
		next, ok := u.after[n]
		if !ok {
			next = n + 1
		}
		u.after[n] = free
		n = next
	}
	return free
}
