package admission

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Memory bounds what is held for switches: messages that are not handled yet,
// the state of their ports, and answers that they request but do not read. It
// counts from the first byte of a connection on, for each session and for all
// together. Sessions still in their handshake may use only a part of it. While
// there is room nothing is restricted. When there is none, the session in
// handshake that holds most ends, the latest of equals. If no session is in
// handshake, the longest answer that is being received is given up.
type Memory struct {
	Session, all int // bytes

	mu       sync.Mutex // guards what follows, and all accounts
	held     int
	begun    int                   // part of held that belongs to sessions in handshake
	accounts map[*Account]struct{} // accounts that hold something
}

// HandshakeShare is the divisor for the part of the memory, of one session and
// of all, that handshakes may use.
const HandshakeShare = 8

// ErrClosed is the error for sending to a switch that has gone.
var ErrClosed = errors.New("the switch is not connected")

// Account is the memory held for one session.
type Account struct {
	memory  *Memory
	began   time.Time
	drop    func(*Excess) // ends the session
	abandon func(*Excess) // gives up the answers being received

	held    int
	answers int // the part of held that holds parts of answers
	known   bool
	closed  bool
}

// Bounds on a switch: as many ports as OpenFlow 1.0 has numbers, as many tables
// as there are numbers, of the rest more than switches have.
const (
	PortsMost  = 1 << 16
	TablesMost = 1 << 8
	QueuesMost = 1 << 18
	GroupsMost = 1 << 17
	MetersMost = 1 << 17
	FlowsMost  = 1 << 20
)

// Bound names a limit that a switch has exceeded.
type Bound string

// The bounds.
const (
	boundSession   Bound = "session"
	boundHandshake Bound = "handshake"
	BoundAll       Bound = "all"
	BoundPorts     Bound = "ports"
	BoundTables    Bound = "tables"
	BoundQueues    Bound = "queues"
	BoundGroups    Bound = "groups"
	BoundMeters    Bound = "meters"
	BoundFlows     Bound = "flows"
	BoundAnswer    Bound = "answer"
	BoundEvents    Bound = "events"
	BoundParts     Bound = "parts"
)

// Bounds lists all bounds.
func Bounds() []Bound {
	return []Bound{boundSession, boundHandshake, BoundAll, BoundPorts, BoundTables, BoundQueues, BoundGroups, BoundMeters, BoundFlows, BoundAnswer, BoundEvents, BoundParts}
}

// Excess is the error of a switch that exceeds a bound.
type Excess struct {
	Bound Bound
	Most  int
}

// NewExcess returns the error of a switch that exceeds a bound, of which it may
// have most.
func NewExcess(b Bound, most int) *Excess { return &Excess{b, most} }

// Error says what exceeds the bound, and which key raises it.
func (e *Excess) Error() string {
	switch e.Bound {
	case boundSession:
		return fmt.Sprintf("the switch would take more than %d octets of memory (southbound.session_bytes)", e.Most)
	case boundHandshake:
		return fmt.Sprintf("the handshake would take more than %d octets of memory (1/%d of southbound.session_bytes)", e.Most, HandshakeShare)
	case BoundAnswer:
		return fmt.Sprintf("an answer of the switch has more than %d octets (1/%d of southbound.session_bytes)", e.Most, HandshakeShare)
	case BoundEvents:
		return fmt.Sprintf("the switch has sent more than %d octets of events during its handshake", e.Most)
	case BoundAll:
		return fmt.Sprintf("switches would take more than %d octets of memory (southbound.total_bytes), and this one takes most", e.Most)
	}
	return fmt.Sprintf("the switch has more than %d %s", e.Most, e.Bound)
}

// NewMemory returns the memory of sessions that may take session bytes each,
// and all together.
func NewMemory(session, all int) *Memory {
	return &Memory{Session: session, all: all, accounts: map[*Account]struct{}{}}
}

// NewAccount returns the account of a session that began at a time. drop ends
// the session, abandon gives up the answers that it is receiving.
func (m *Memory) NewAccount(began time.Time, drop, abandon func(*Excess)) *Account {
	return &Account{memory: m, began: began, drop: drop, abandon: abandon}
}

// AnswerMost is how many bytes one answer of the switch may have.
func (a *Account) AnswerMost() int { return a.memory.Session / HandshakeShare }

// Take adds n bytes. The error is an *excess, or errClosed if the session has
// ended; then take adds nothing.
func (a *Account) Take(n int) error { return a.charge(n, false) }

// TakeAnswer is take for a part of an answer.
func (a *Account) TakeAnswer(n int) error { return a.charge(n, true) }

func (a *Account) charge(n int, answer bool) error {
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.closed {
		return ErrClosed
	}
	switch {
	case !a.known && a.held+n > m.Session/HandshakeShare:
		return &Excess{boundHandshake, m.Session / HandshakeShare}
	case a.held+n > m.Session:
		return &Excess{boundSession, m.Session}
	}
	a.add(n)
	if answer {
		a.answers += n
	}
	for !a.known && m.begun > m.all/HandshakeShare || m.held > m.all {
		full := &Excess{BoundAll, m.all}
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
func (a *Account) add(n int) {
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
func (m *Memory) largest() (v *Account) {
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

// Give subtracts n bytes.
func (a *Account) Give(n int) {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	if !a.closed {
		a.add(-n)
	}
}

// GiveAnswer is give for parts of an answer.
func (a *Account) GiveAnswer(n int) {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	if n = min(n, a.answers); !a.closed { // the rest was given up before
		a.add(-n)
		a.answers -= n
	}
}

// Establish records that the handshake is over.
func (a *Account) Establish() {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	if !a.known && !a.closed {
		a.memory.begun -= a.held
		a.known = true
	}
}

// End gives back all that a session holds; the session is over.
func (a *Account) End() {
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	a.close()
}

// close is end for a caller that holds the lock.
func (a *Account) close() {
	if !a.closed {
		a.add(-a.held)
		a.answers, a.closed = 0, true
	}
}

// Size returns what is held for all sessions, and for those in handshake.
func (m *Memory) Size() (held, begun int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held, m.begun
}

// Buffer is memory of a session whose size changes. One goroutine at a time
// uses it.
type Buffer struct {
	Account *Account
	n       int
}

// BufferStep is the unit, in bytes, in which buffers are counted. Less than one
// unit counts as nothing: sessions that send only small messages take no more.
const BufferStep = 4 << 10

// Resize counts n bytes instead of the former size.
func (b *Buffer) Resize(n int) error {
	n -= n % BufferStep
	if n == b.n {
		return nil
	}
	if n < b.n {
		b.Account.Give(b.n - n)
		b.n = n
		return nil
	}
	if err := b.Account.Take(n - b.n); err != nil {
		return err
	}
	b.n = n
	return nil
}
