package southbound

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// memory bounds what is held for switches: messages that are not handled yet,
// the state of their ports, and answers that they request but do not read. It
// counts from the first byte of a connection on, for each session and for all
// together. Sessions still in their handshake may use only a part of it. While
// there is room nothing is restricted. When there is none, the session in
// handshake that holds most ends, the latest of equals. If no session is in
// handshake, the longest answer that is being received is given up.
type memory struct {
	session, all int // bytes

	mu       sync.Mutex // guards what follows, and all accounts
	held     int
	begun    int                   // part of held that belongs to sessions in handshake
	accounts map[*account]struct{} // accounts that hold something
}

// handshakeShare is the divisor for the part of the memory, of one session and
// of all, that handshakes may use.
const handshakeShare = 8

// errClosed is the error for sending to a switch that has gone.
var errClosed = errors.New("the switch is not connected")

// account is the memory held for one session.
type account struct {
	memory  *memory
	began   time.Time
	drop    func(*excess) // ends the session
	abandon func(*excess) // gives up the answers being received

	held    int
	answers int // the part of held that holds parts of answers
	known   bool
	closed  bool
}

// Bounds on a switch: as many ports as OpenFlow 1.0 has numbers, as many tables
// as there are numbers, of the rest more than switches have.
const (
	portsMost  = 1 << 16
	tablesMost = 1 << 8
	queuesMost = 1 << 18
	groupsMost = 1 << 17
	metersMost = 1 << 17
	flowsMost  = 1 << 20
)

// bound names a limit that a switch has exceeded.
type bound string

// The bounds.
const (
	boundSession   bound = "session"
	boundHandshake bound = "handshake"
	boundAll       bound = "all"
	boundPorts     bound = "ports"
	boundTables    bound = "tables"
	boundQueues    bound = "queues"
	boundGroups    bound = "groups"
	boundMeters    bound = "meters"
	boundFlows     bound = "flows"
	boundAnswer    bound = "answer"
	boundEvents    bound = "events"
	boundParts     bound = "parts"
)

// bounds lists all bounds.
func bounds() []bound {
	return []bound{boundSession, boundHandshake, boundAll, boundPorts, boundTables, boundQueues, boundGroups, boundMeters, boundFlows, boundAnswer, boundEvents, boundParts}
}

// excess is the error of a switch that exceeds a bound.
type excess struct {
	bound bound
	most  int
}

// Error says what exceeds the bound, and which key raises it.
func (e *excess) Error() string {
	switch e.bound {
	case boundSession:
		return fmt.Sprintf("the switch would take more than %d octets of memory (southbound.session_bytes)", e.most)
	case boundHandshake:
		return fmt.Sprintf("the handshake would take more than %d octets of memory (1/%d of southbound.session_bytes)", e.most, handshakeShare)
	case boundAnswer:
		return fmt.Sprintf("an answer of the switch has more than %d octets (1/%d of southbound.session_bytes)", e.most, handshakeShare)
	case boundEvents:
		return fmt.Sprintf("the switch has sent more than %d octets of events during its handshake", e.most)
	case boundAll:
		return fmt.Sprintf("switches would take more than %d octets of memory (southbound.total_bytes), and this one takes most", e.most)
	}
	return fmt.Sprintf("the switch has more than %d %s", e.most, e.bound)
}

// newMemory returns the memory of sessions that may take session bytes each,
// and all together.
func newMemory(session, all int) *memory {
	return &memory{session: session, all: all, accounts: map[*account]struct{}{}}
}

// newAccount returns the account of a session that began at a time. drop ends
// the session, abandon gives up the answers that it is receiving.
func (m *memory) newAccount(began time.Time, drop, abandon func(*excess)) *account {
	return &account{memory: m, began: began, drop: drop, abandon: abandon}
}

// answerMost is how many bytes one answer of the switch may have.
func (a *account) answerMost() int { return a.memory.session / handshakeShare }

// take adds n bytes. The error is an *excess, or errClosed if the session has
// ended; then take adds nothing.
func (a *account) take(n int) error { return a.charge(n, false) }

// takeAnswer is take for a part of an answer.
func (a *account) takeAnswer(n int) error { return a.charge(n, true) }

func (a *account) charge(n int, answer bool) error {
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.closed {
		return errClosed
	}
	switch {
	case !a.known && a.held+n > m.session/handshakeShare:
		return &excess{boundHandshake, m.session / handshakeShare}
	case a.held+n > m.session:
		return &excess{boundSession, m.session}
	}
	a.add(n)
	if answer {
		a.answers += n
	}
	for !a.known && m.begun > m.all/handshakeShare || m.held > m.all {
		full := &excess{boundAll, m.all}
		v := m.largest()
		if v == nil || v == a {
			a.add(-n)
			if answer {
				a.answers -= n
			}
			return full
		}
		if v.known {
			v.add(-v.answers)
			v.answers = 0
			go v.abandon(full)
		} else {
			v.close()
			go v.drop(full)
		}
	}
	return nil
}

// add changes the amount held. The caller holds the lock.
func (a *account) add(n int) {
	a.held += n
	a.memory.held += n
	if !a.known {
		a.memory.begun += n
	}
	if a.held > 0 {
		a.memory.accounts[a] = struct{}{}
	} else {
		delete(a.memory.accounts, a)
	}
}

// largest returns the session in handshake that holds most; if there is none,
// the other session that holds the longest answers, nil if no session holds
// any. The caller holds the lock.
func (m *memory) largest() (v *account) {
	for a := range m.accounts {
		if !a.known && (v == nil || a.held > v.held || a.held == v.held && a.began.After(v.began)) {
			v = a
		}
	}
	if v != nil {
		return v
	}
	for a := range m.accounts {
		if a.answers > 0 && (v == nil || a.answers > v.answers) {
			v = a
		}
	}
	return v
}

// give subtracts n bytes.
func (a *account) give(n int) {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	if !a.closed {
		a.add(-n)
	}
}

// giveAnswer is give for parts of an answer.
func (a *account) giveAnswer(n int) {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	if n = min(n, a.answers); !a.closed { // the rest was given up before
		a.add(-n)
		a.answers -= n
	}
}

// establish records that the handshake is over.
func (a *account) establish() {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	if !a.known && !a.closed {
		a.memory.begun -= a.held
		a.known = true
	}
}

// end gives back all that a session holds; the session is over.
func (a *account) end() {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	a.close()
}

// close is end for a caller that holds the lock.
func (a *account) close() {
	if !a.closed {
		a.add(-a.held)
		a.answers, a.closed = 0, true
	}
}

// size returns what is held for all sessions, and for those in handshake.
func (m *memory) size() (held, begun int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held, m.begun
}

// buffer is memory of a session whose size changes. One goroutine at a time
// uses it.
type buffer struct {
	account *account
	n       int
}

// bufferStep is the unit, in bytes, in which buffers are counted. Less than one
// unit counts as nothing: sessions that send only small messages take no more.
const bufferStep = 4 << 10

// resize counts n bytes instead of the former size.
func (b *buffer) resize(n int) error {
	n -= n % bufferStep
	if n == b.n {
		return nil
	}
	if n < b.n {
		b.account.give(b.n - n)
		b.n = n
		return nil
	}
	if err := b.account.take(n - b.n); err != nil {
		return err
	}
	b.n = n
	return nil
}
