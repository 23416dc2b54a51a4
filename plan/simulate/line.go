package simulate

// line simulates a chain of single copies, or one stage of several: it follows
// each packet to its end, in the order in which they come (Lindley's and Kiefer
// and Wolfowitz's recursions). Of copies that packets are dealt to whatever their
// queues, it simulates one.
type line struct {
	arrivals *arrivals
	services []*sampler
	now      float64
	free     []float64   // by stage, or by copy: when it has served what has come
	stage    Stage       // of several copies
	there    [][]float64 // by copy: when the packets that are there leave; nil: not needed
	shortest *shortest   // nil: copies get packets otherwise
	servers  heap        // before one queue with any room: when each is free; nil: likewise
	sums     []float64
	expected []float64
	square   bool    // arrivals are independent of each other
	drift    float64 // of the unfinished work of the first stage between packets, above 0
}

func newLine(s System, seed uint64) *line {
	source := sources(seed)
	l := &line{arrivals: newArrivals(s.Arrivals, s.Bursts, source()), stage: s.Stages[0], square: s.Bursts == nil}
	a := s.Arrivals
	if n := l.stage.Copies; n > 1 && l.stage.Dispatch != Central && l.stage.Dispatch != Shortest {
		l.stage.Copies = 1
		a = l.arrivals.deal(n, l.stage.Dispatch)
	}
	mean, second := 0.0, 0.0
	for _, st := range s.Stages {
		l.services = append(l.services, newSampler(st.Service, source()))
		mean += st.Service.Mean
		second += st.Service.Mean * st.Service.Mean * (1 + st.Service.SCV)
	}
	l.free = make([]float64, max(len(s.Stages), l.stage.Copies))
	switch {
	case l.stage.Dispatch == Shortest && l.stage.Copies > 1:
		l.shortest = newShortest(l.stage.Copies)
	case l.stage.Room > 0:
		l.there = make([][]float64, l.stage.Copies)
	case l.stage.Copies > 1:
		l.servers = make(heap, l.stage.Copies)
		for i := range l.servers {
			l.servers[i].packet = int32(i)
		}
	}
	if l.stage.Room == 0 {
		l.expected = []float64{a.Mean, mean, second}
		if l.square {
			l.expected = append(l.expected, a.Mean*a.Mean*(1+a.SCV))
		}
		if first := s.Stages[0].Service; l.square && l.stage.Copies == 1 {
			l.drift = a.Mean - first.Mean
			l.expected = append(l.expected, (a.Mean*a.Mean*a.SCV+first.Mean*first.Mean*first.SCV+l.drift*l.drift)/2)
		}
		l.sums = make([]float64, len(l.expected))
	}
	return l
}

func (l *line) means() []float64 { return l.expected }

func (l *line) controls() []float64 {
	if l.sums == nil {
		return nil
	}
	sums := l.sums
	l.sums = make([]float64, len(sums))
	return sums
}

func (l *line) next() (float64, bool) {
	between := l.arrivals.draw()
	l.now += between
	at := l.now
	if l.stage.Copies > 1 || l.there != nil {
		copy, lost := l.choose()
		if lost {
			return 0, true
		}
		service := l.services[0].draw()
		at = max(at, l.free[copy]) + service
		l.free[copy] = at
		switch {
		case l.shortest != nil:
			l.shortest.add(copy, at)
		case l.servers != nil:
			l.servers.push(entry{at, int32(copy)})
		default:
			l.there[copy] = append(l.there[copy], at)
		}
		l.note(between, service, service*service)
		return at - l.now, false
	}
	if l.drift > 0 && l.sums != nil {
		// Marshall's identity: E[W](E[A]-E[S]) + E[I²]/2 = E[(A-S)²]/2, with the wait W
		// and the idle time I before a packet.
		if wait := l.free[0] - at; wait > 0 {
			l.sums[4] += wait * l.drift
		} else {
			l.sums[4] += wait * wait / 2
		}
	}
	sum, squares := 0.0, 0.0
	for i, s := range l.services {
		service := s.draw()
		at = max(at, l.free[i]) + service
		l.free[i] = at
		sum += service
		squares += service * service
	}
	l.note(between, sum, squares)
	return at - l.now, false
}

// note adds to the controls.
func (l *line) note(between, service, squares float64) {
	if l.sums == nil {
		return
	}
	l.sums[0] += between
	l.sums[1] += service
	l.sums[2] += squares
	if l.square {
		l.sums[3] += between * between
	}
}

// choose returns the copy that takes the packet that comes now, or that there is
// no room.
func (l *line) choose() (copy int, lost bool) {
	switch {
	case l.shortest != nil:
		copy, packets := l.shortest.choose(l.now)
		return copy, l.stage.Room > 0 && packets >= l.stage.Room
	case l.servers != nil:
		return int(l.servers.pop()), false
	}
	all := 0
	for i, queue := range l.there {
		gone := 0
		for gone < len(queue) && queue[gone] <= l.now {
			gone++
		}
		if gone > 0 {
			l.there[i] = queue[:len(queue)-gone]
			copyDown(queue, gone)
		}
		all += len(l.there[i])
	}
	if all >= l.stage.Room {
		return 0, true
	}
	for i, f := range l.free[:l.stage.Copies] {
		if f < l.free[copy] {
			copy = i
		}
	}
	return copy, false
}

// copyDown moves a queue to its front.
func copyDown(queue []float64, gone int) { copy(queue, queue[gone:]) }
