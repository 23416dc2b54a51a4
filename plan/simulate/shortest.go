package simulate

// shortest gives each packet to the copy that has the fewest; of several, to the first.
type shortest struct {
	packets []int // by copy
	// tree has, from 1 on, the better of its two branches, 2i and 2i+1; its last half
	// are the copies themselves.
	tree  []int
	leave heap // when packets leave which copy
}

func newShortest(copies int) *shortest {
	s := &shortest{packets: make([]int, copies), tree: make([]int, 2*copies)}
	for i := range copies {
		s.tree[copies+i] = i
	}
	for i := copies - 1; i > 0; i-- {
		s.tree[i] = s.better(i)
	}
	return s
}

// better returns which copy of two branches is chosen.
func (s *shortest) better(branch int) int {
	a, b := s.tree[2*branch], s.tree[2*branch+1]
	if s.packets[b] < s.packets[a] || s.packets[b] == s.packets[a] && b < a {
		return b
	}
	return a
}

// change makes the packets of a copy more or fewer.
func (s *shortest) change(copy, by int) {
	s.packets[copy] += by
	for i := (len(s.packets) + copy) / 2; i > 0; i /= 2 {
		s.tree[i] = s.better(i)
	}
}

// choose returns the copy that takes a packet at a time, and how many it has.
func (s *shortest) choose(now float64) (copy, packets int) {
	for len(s.leave) > 0 && s.leave[0].at <= now {
		s.change(int(s.leave.pop()), -1)
	}
	return s.tree[1], s.packets[s.tree[1]]
}

// add gives a copy a packet that leaves at a time.
func (s *shortest) add(copy int, leaves float64) {
	s.change(copy, +1)
	s.leave.push(entry{leaves, int32(copy)})
}
