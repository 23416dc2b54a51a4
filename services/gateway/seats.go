package gateway

import (
	"slices"
	"sync"
)

// seats bounds how many clients may follow something at once. For one more that
// may change the network, the oldest that may not has to go.
type seats struct {
	most int

	mu     sync.Mutex // guards what follows
	taken  []*seat    // the oldest first
	closed bool
	wait   sync.WaitGroup // of those who have a seat
}

// seat is the place of one client.
type seat struct {
	who  caller
	goes func() // asks the client to go; it does not wait for it
	gone bool   // it was asked
}

// take gives a client a seat until it calls leave; false if there is none. goes
// asks it to go for another, once at most.
func (s *seats) take(who caller, goes func()) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stay := 0
	var oldest *seat
	for _, other := range s.taken {
		if other.gone {
			continue
		}
		stay++
		if oldest == nil && other.who.role < roleOperate {
			oldest = other
		}
	}
	switch {
	case s.closed:
		return nil, false
	case stay < s.most:
	case who.role < roleOperate || oldest == nil:
		return nil, false
	default:
		oldest.gone = true
		oldest.goes()
	}
	mine := &seat{who: who, goes: goes}
	s.taken = append(s.taken, mine)
	s.wait.Add(1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken = slices.DeleteFunc(s.taken, func(x *seat) bool { return x == mine })
		s.wait.Done()
	}, true
}

// len returns how many seats are taken.
func (s *seats) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}

// close gives no more seats, and waits until all are free.
func (s *seats) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wait.Wait()
}
