package shares

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/internal/testwait"
)

// enqueue starts a call of Acquire, and returns once it waits. The holder's name
// goes to got when it has its place, which it gives back at once.
func enqueue(t *testing.T, ctx context.Context, p *Places, c Client, name string, got chan<- string) {
	t.Helper()
	before := p.Waiting()
	go acquire(ctx, p, c, name, got)
	testwait.Until(t, "a call waits", func() bool { return p.Waiting() == before+1 })
}

func acquire(ctx context.Context, p *Places, c Client, name string, got chan<- string) {
	l, err := p.Acquire(ctx, c, nil)
	if err != nil {
		got <- name + ": " + err.Error()
		return
	}
	got <- name
	l.Release()
}

func take(t *testing.T, p *Places, c Client) *Place {
	t.Helper()
	l, err := p.TryAcquire(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Whoever waits gets the next place by rank, and clients of a rank take turns,
// however many calls each has waiting.
func TestTurns(t *testing.T) {
	p := New(Limits{What: "files", Places: 1, Waiting: 20, WaitingPerClient: 10})
	first := take(t, p, Client{"anna", Reader})
	got := make(chan string, 20)
	for i := range 3 {
		enqueue(t, t.Context(), p, Client{"anna", Reader}, fmt.Sprint("anna ", i), got)
	}
	for i := range 2 {
		enqueue(t, t.Context(), p, Client{"bert", Reader}, fmt.Sprint("bert ", i), got)
	}
	enqueue(t, t.Context(), p, Client{"otto", Operator}, "otto", got)
	enqueue(t, t.Context(), p, Client{"root", Administrator}, "root", got)
	first.Release()
	first.Release() // changes nothing
	var order []string
	for range 7 {
		order = append(order, <-got)
	}
	if want := []string{"root", "otto", "bert 0", "anna 0", "bert 1", "anna 1", "anna 2"}; !slices.Equal(order, want) {
		t.Errorf("%v; want %v", order, want)
	}
	if p.Close(); p.Len() != 0 || len(p.clients) != 0 {
		t.Errorf("%d places are held, %d clients remembered", p.Len(), len(p.clients))
	}
}

// One place is reserved for administrators, and no client has more than its share.
func TestShareAndReserve(t *testing.T) {
	p := New(Limits{What: "files", Places: 4, Reserved: 1, PerClient: 2})
	a := Client{"anna", Reader}
	take(t, p, a)
	second := take(t, p, a)
	if _, err := p.TryAcquire(a, nil); err == nil || !strings.Contains(err.Error(), "2 files of anna") {
		t.Errorf("a third of one client: %v", err)
	}
	take(t, p, Client{"bert", Operator})
	if _, err := p.TryAcquire(Client{"carl", Operator}, nil); err == nil || !strings.Contains(err.Error(), "3 files already") {
		t.Errorf("the reserved place: %v", err)
	}
	take(t, p, Client{"root", Administrator})
	if _, err := p.TryAcquire(Client{"root", Administrator}, nil); !errors.As(err, new(*Full)) {
		t.Errorf("a fifth: %v", err)
	}
	second.Release()
	take(t, p, Client{"carl", Operator})
}

// A call whose context ends leaves the queue, and the next one is not held up.
func TestWaitersLeave(t *testing.T) {
	p := New(Limits{What: "files", Places: 1, Waiting: 5, WaitingPerClient: 5})
	first := take(t, p, Client{"anna", Reader})
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan string, 2)
	enqueue(t, ctx, p, Client{"bert", Reader}, "bert", got)
	enqueue(t, t.Context(), p, Client{"carl", Reader}, "carl", got)
	cancel()
	if one := <-got; one != "bert: context canceled" || p.Waiting() != 1 {
		t.Errorf("%s, %d wait", one, p.Waiting())
	}
	first.Release()
	if one := <-got; one != "carl" {
		t.Error(one)
	}
	if _, err := p.Acquire(ctx, Client{"bert", Reader}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	last, err := p.Acquire(t.Context(), Client{"anna", Reader}, nil) // once carl has left
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, t.Context(), p, Client{"bert", Reader}, "bert", got)
	go p.Close()
	if one := <-got; !strings.Contains(one, ErrClosed.Error()) {
		t.Error(one)
	}
	last.Release()
	if _, err := p.TryAcquire(Client{"anna", Administrator}, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// The queue is bounded, in all and for each client. A full one makes room for a
// higher rank, and for a client with fewer that wait.
func TestQueueIsBounded(t *testing.T) {
	p := New(Limits{What: "files", Places: 1, Waiting: 3, WaitingPerClient: 3})
	first := take(t, p, Client{"anna", Reader})
	got := make(chan string, 10)
	for i := range 3 {
		enqueue(t, t.Context(), p, Client{"anna", Reader}, fmt.Sprint("anna ", i), got)
	}
	if _, err := p.Acquire(t.Context(), Client{"anna", Reader}, nil); err == nil || !strings.Contains(err.Error(), "3 requests of anna wait") {
		t.Error(err)
	}
	go acquire(t.Context(), p, Client{"root", Administrator}, "root", got)
	if one := <-got; !strings.HasPrefix(one, "anna 2: another client comes first") {
		t.Error(one)
	}
	if _, err := p.TryAcquire(Client{"dora", Reader}, nil); err == nil {
		t.Error("a place beside the queue")
	}
	go acquire(t.Context(), p, Client{"bert", Reader}, "bert", got)
	if one := <-got; !strings.HasPrefix(one, "anna 1: ") {
		t.Error(one)
	}
	go acquire(t.Context(), p, Client{"carl", Reader}, "carl", got)
	if one := <-got; !strings.HasPrefix(one, "carl: 3 requests wait") { // each has one
		t.Error(one)
	}
	first.Release()
	for _, want := range []string{"root", "bert", "anna 0"} {
		if one := <-got; one != want {
			t.Errorf("%s; want %s", one, want)
		}
	}
}

// TestEviction: who holds more than others, is of a lower rank, or does nothing
// with its place, has to leave it for another; each is asked once.
func TestEviction(t *testing.T) {
	evictions, reported := 0, 0
	count := Sparsely(func(n uint64) {
		if reported++; n != 1 && n != 2 && n != 4 {
			t.Errorf("count %d is reported", n)
		}
	})
	p := New(Limits{What: "streams", Places: 3, Evicted: func() { evictions++; count() }})
	var gone []string
	hold := func(c Client, name string) (*Place, error) {
		return p.TryAcquire(c, func(err error) {
			gone = append(gone, name)
			if !errors.As(err, new(*Evicted)) || !strings.Contains(err.Error(), "at most 3 streams") {
				t.Error(err)
			}
		})
	}
	left := func(want ...string) {
		t.Helper()
		if !slices.Equal(gone, want) {
			t.Errorf("%v left; want %v", gone, want)
		}
	}
	anna, bert, otto, root := Client{"anna", Reader}, Client{"bert", Reader}, Client{"otto", Operator}, Client{"root", Administrator}
	for i := range 3 {
		if _, err := hold(anna, fmt.Sprint("anna ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := hold(anna, "anna 3"); err == nil {
		t.Error("a client takes its own place")
	}
	if _, err := hold(bert, "bert"); err != nil { // 3 and 0 become 2 and 1
		t.Error(err)
	}
	left("anna 0")
	if _, err := hold(bert, "bert 2"); err == nil {
		t.Error("2 and 1 become 1 and 2")
	}
	for i := range 3 {
		if _, err := hold(otto, fmt.Sprint("otto ", i)); err != nil {
			t.Error(err)
		}
	}
	left("anna 0", "anna 1", "anna 2", "bert")
	if _, err := hold(bert, "bert"); err == nil {
		t.Error("a reader takes an operator's place")
	}
	l, err := hold(root, "root")
	if err != nil {
		t.Error(err)
	}
	left("anna 0", "anna 1", "anna 2", "bert", "otto 0")
	gone = nil
	l.SetIdle(true)
	if _, err := hold(bert, "bert"); err == nil {
		t.Error("a reader takes an idle administrator's place")
	}
	if _, err := hold(root, "root 2"); err != nil { // its own
		t.Error(err)
	}
	left("root")
	if evictions != 6 || reported != 3 {
		t.Errorf("%d evictions are counted, %d reported", evictions, reported)
	}
}

// Among the idle, the one that is idle for longest leaves first, also for a call
// that would wait.
func TestIdleLeaveFirst(t *testing.T) {
	p := New(Limits{What: "connections", Places: 3, Waiting: 5, WaitingPerClient: 5})
	var gone []int
	c := Client{"user 7", Operator}
	var held []*Place
	for i := range 3 {
		l, err := p.TryAcquire(c, func(error) { gone = append(gone, i) })
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
	}
	for _, i := range []int{2, 0, 1} {
		held[i].SetIdle(true)
	}
	held[2].SetIdle(false)
	for range 2 {
		if _, err := p.Acquire(t.Context(), c, nil); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(gone, []int{0, 1}) {
		t.Error(gone)
	}
	if _, err := p.TryAcquire(c, nil); err == nil {
		t.Error("a place that is used is taken")
	}
}

// Among the idle, those of the client with the most places leave first, however
// lately it has used them.
func TestIdleOfTheLargestLeaveFirst(t *testing.T) {
	p := New(Limits{What: "connections", Places: 4})
	var gone []string
	hold := func(name string) *Place {
		t.Helper()
		l, err := p.TryAcquire(Client{Name: name}, func(error) { gone = append(gone, name) })
		if err != nil {
			t.Fatal(err)
		}
		l.SetIdle(true)
		return l
	}
	hold("old")
	for range 3 {
		hold("many")
	}
	for _, name := range []string{"one", "two"} {
		hold(name)
	}
	if !slices.Equal(gone, []string{"many", "many"}) {
		t.Error(gone)
	}
}
