package session

import (
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/recovery"
	"github.com/weft-sdn/weft/services/southbound/secure"
	"github.com/weft-sdn/weft/services/southbound/watch"
	"golang.org/x/sys/unix"
)

// endless is a connection that always has something to read.
type endless struct{}

func (endless) Control(f func(uintptr)) error { f(0); return nil }

func (endless) Read(f func(uintptr) bool) error { f(0); return nil }

func (endless) Write(func(uintptr) bool) error { return nil }

// TestReadAheadIsBounded: of a switch that sends without end only so much is
// read before its goroutine comes; and one whose echoes, which are dealt with at
// once, do not end keeps nobody else from being looked after.
func TestReadAheadIsBounded(t *testing.T) {
	reply, err := openflow.V13.AppendEchoReply(nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		msg       []byte
		fill      bool // reads bring as much as there is room for
		remaining bool // something is left for the goroutine
	}{
		{"packet-ins", packetIn(t, openflow.V13, flow.EthTypeIPv4), true, true},
		{"echoes", reply, false, false},
	} {
		h := newAlone()
		e := newReadAhead(&liveness{channel: &channel{shared: h, Version: openflow.V13, out: &outbox{}}}, &recovery.Progress{Tally: &recovery.Tally{}}, endless{})
		at, reads := 0, 0
		e.read = func(uintptr) bool {
			if reads++; reads > turnMost {
				t.Fatalf("%s: one turn does not end", c.name)
			}
			for e.got = 0; e.got < len(e.room); {
				n := copy(e.room[e.got:], c.msg[at:])
				e.got, at = e.got+n, (at+n)%len(c.msg)
				if !c.fill {
					break
				}
			}
			return true
		}
		e.start(nil)
		e.parked = true
		e.Look(1, unix.EPOLLRDHUP)
		if !e.full || e.whole > 0 != c.remaining || len(e.buf) > EarlyMost+ReadMax || len(e.wake) != 1 {
			t.Errorf("%s: full %v, %d of %d octets for the goroutine, %d times woken; want it to go on with the rest", c.name, e.full, e.whole, len(e.buf), len(e.wake))
		}
	}
}

// TestWatchThatIsOver: nobody is looked after by a watch that has ended, nor, by
// mistake, by one that has its file descriptor since.
func TestWatchThatIsOver(t *testing.T) {
	over, other := watch.New(), watch.New()
	first, _ := socketPair(t)
	if _, err := over.Add(secure.RawConn(first), newReadAhead(&liveness{channel: &channel{}}, &recovery.Progress{}, secure.RawConn(first))); err != nil {
		t.Fatal(err)
	}
	over.Close()
	defer other.Close()
	ours, _ := socketPair(t)
	e := newReadAhead(&liveness{channel: &channel{}}, &recovery.Progress{}, secure.RawConn(ours))
	if _, err := over.Add(e.raw, e); err == nil {
		t.Error("it takes a connection")
	}
	if _, err := other.Add(e.raw, e); err != nil {
		t.Fatal(err)
	}
	over.Remove(e.raw, e.id)
	if _, err := other.Add(e.raw, e); err != unix.EEXIST {
		t.Errorf("%v: the other does not look after it any more", err)
	}
}
