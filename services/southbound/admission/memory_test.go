package admission

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// purse is an account whose owner takes down what becomes of it.
type purse struct {
	*Account
	mu      sync.Mutex // guards what follows
	dropped bool
	gaveUp  bool
}

func newPurse(m *Memory, began int64) *purse {
	p := &purse{}
	p.Account = &Account{
		memory: m, began: time.Unix(began, 0),
		drop:    func(*Excess) { p.mu.Lock(); defer p.mu.Unlock(); p.dropped = true },
		abandon: func(*Excess) { p.mu.Lock(); defer p.mu.Unlock(); p.gaveUp = true },
	}
	return p
}

func (p *purse) fate() (dropped, gaveUp bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped, p.gaveUp
}

// TestMemoryAddsUp: whatever sessions do, what is held is the sum of what is held
// for each, and within its bounds.
func TestMemoryAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		m := NewMemory(800, 4000)
		var list []*purse
		for n := range 3000 {
			if len(list) < 40 && r.IntN(4) == 0 {
				list = append(list, newPurse(m, int64(n)))
			}
			if len(list) == 0 {
				continue
			}
			p := list[r.IntN(len(list))]
			switch n := 1 + r.IntN(120); r.IntN(7) {
			case 0, 1:
				_ = p.Take(n)
			case 2, 3:
				_ = p.TakeAnswer(n)
			case 4:
				m.mu.Lock()
				n, k := min(n, p.answers), min(n, p.held-p.answers)
				m.mu.Unlock()
				p.GiveAnswer(n)
				p.Give(k)
			case 5:
				p.Establish()
			default:
				if n < 5 {
					p.End()
				}
			}
			held, begun := m.Size()
			sum, sumBegun := 0, 0
			for _, p := range list {
				if p.held < 0 || p.answers < 0 || p.answers > p.held || p.held > m.Session || !p.known && p.held > m.Session/HandshakeShare {
					t.Fatalf("%+v", p.Account)
				}
				sum += p.held
				if !p.known {
					sumBegun += p.held
				}
			}
			if held != sum || begun != sumBegun || held > m.all || begun > m.all/HandshakeShare {
				t.Fatalf("%d and %d are held; by all %d and %d", held, begun, sum, sumBegun)
			}
		}
	}
}

// TestWhoMakesRoom: of those at their handshake who holds most, the latest of
// equals; only if there are none, the longest answer of another.
func TestWhoMakesRoom(t *testing.T) {
	m := NewMemory(8000, 8000)
	up, small, first, second := newPurse(m, 1), newPurse(m, 2), newPurse(m, 3), newPurse(m, 4)
	up.Establish()
	take := func(p *purse, n int) {
		t.Helper()
		if err := p.Take(n); err != nil {
			t.Fatal(err)
		}
	}
	take(up, 3000)
	take(small, 200)
	take(first, 400)
	take(second, 400)
	take(small, 100) // of 1000 for handshakes 1100 would be held
	if !second.closed || first.closed || up.closed {
		t.Errorf("closed: %v, %v, %v", second.closed, first.closed, up.closed)
	}
	take(up, 4300)
	if err := up.TakeAnswer(400); err != nil || !first.closed || small.closed {
		t.Errorf("%v; closed: %v, %v", err, first.closed, small.closed)
	}
	other := newPurse(m, 5)
	other.Establish()
	take(other, 300)
	if small.closed == false || other.closed || up.closed {
		t.Errorf("closed: %v, %v, %v", small.closed, other.closed, up.closed)
	}
	take(other, 200)
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(time.Millisecond) {
		if _, gaveUp := up.fate(); gaveUp {
			break
		} else if time.Now().After(end) {
			t.Fatal("the longest answer is not given up")
		}
	}
	if dropped, _ := up.fate(); dropped || up.closed || up.answers != 0 {
		t.Error("a switch that is up is disconnected to make room")
	}
	if err := other.Take(7000); err == nil {
		t.Error("more is taken than there is")
	}
}
