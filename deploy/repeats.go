package deploy

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/transport"
)

// Bounds of the answers that are kept.
const (
	repeatsKept   = 1024
	repeatsOctets = 8 << 20 // in all
)

// repeats has the answers to the last numbered requests (members.Stamp). A caller whose
// connection was lost before the answer makes its request again. If it reaches the same process,
// it gets the answer to the first, and nothing is changed twice: else a deletion, for one,
// would be told that there was nothing to delete.
type repeats struct {
	mu     sync.Mutex
	by     map[uint64]*repeated
	order  []*repeated // the oldest first
	octets int
}

// repeated is a request that may be made again.
type repeated struct {
	number uint64
	done   chan struct{} // closed when the request has been carried out
	answer []byte        // nil: whether it was carried out is not known
}

// once returns what serve does, or did for the same request before. A number of zero is none.
func (r *repeats) once(ctx context.Context, number uint64, serve func() ([]byte, error)) ([]byte, error) {
	if number == 0 {
		return serve()
	}
	for {
		mine, first := r.begin(number)
		if first {
			answer, err := []byte(nil), error(nil)
			defer func() { r.end(mine, answer) }()
			out, err := serve()
			if err == nil && definite(out) {
				answer = slices.Clone(out)
			}
			return out, err
		}
		select {
		case <-mine.done:
			if mine.answer != nil {
				return slices.Clone(mine.answer), nil
			}
		case <-ctx.Done():
			return nil, transport.ErrorOf(ctx.Err())
		}
	}
}

// definite reports whether an answer says what has become of a request.
func definite(answer []byte) bool {
	switch answer[0] {
	case members.AnswerOK:
		return true
	case members.AnswerError:
		kind := codes.Code(answer[1])
		return kind != codes.Canceled && kind != codes.DeadlineExceeded && kind != codes.Unavailable
	}
	return false
}

// begin returns the request of a number, and whether it is carried out by the caller.
func (r *repeats) begin(number uint64) (x *repeated, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.by[number]; x != nil {
		return x, false
	}
	if r.by == nil {
		r.by = map[uint64]*repeated{}
	}
	x = &repeated{number: number, done: make(chan struct{})}
	r.by[number] = x
	return x, true
}

// end keeps the answer to a request, and drops the oldest if there are too many.
func (r *repeats) end(x *repeated, answer []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.answer = answer
	close(x.done)
	if answer == nil {
		delete(r.by, x.number)
		return
	}
	r.order, r.octets = append(r.order, x), r.octets+len(answer)
	for len(r.order) > repeatsKept || r.octets > repeatsOctets {
		old := r.order[0]
		r.order, r.octets = r.order[1:], r.octets-len(old.answer)
		delete(r.by, old.number)
	}
}
