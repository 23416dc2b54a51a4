package simulate

// entry is what happens to a packet, or a copy, at a time.
type entry struct {
	at     float64
	packet int32
}

// heap has the earliest entry first.
type heap []entry

func (h *heap) push(x entry) {
	*h = append(*h, x)
	list, i := *h, len(*h)-1
	for i > 0 {
		up := (i - 1) / 2
		if list[up].at <= x.at {
			break
		}
		list[i] = list[up]
		i = up
	}
	list[i] = x
}

func (h *heap) pop() int32 {
	list := *h
	first, x := list[0].packet, list[len(list)-1]
	list = list[:len(list)-1]
	*h = list
	for i := 0; len(list) > 0; {
		down := 2*i + 1
		if down+1 < len(list) && list[down+1].at < list[down].at {
			down++
		}
		if down >= len(list) || list[down].at >= x.at {
			list[i] = x
			break
		}
		list[i] = list[down]
		i = down
	}
	return first
}
