package deploy

import (
	"context"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/members"
)

// TestRepeats: a request that is made again while it is carried out waits for the answer; what has
// become of a request must be known for its answer to count; and the number of answers is bounded.
func TestRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r repeats
		served := 0
		serve := func(answer []byte, err error) func() ([]byte, error) {
			return func() ([]byte, error) { served++; return answer, err }
		}
		ask := func(number uint64, want byte, count int, f func() ([]byte, error)) {
			t.Helper()
			got, err := r.once(t.Context(), number, f)
			if err != nil || got[len(got)-1] != want || served != count {
				t.Errorf("request %d: %v, %v, served %d times; want %d and %d", number, got, err, served, want, count)
			}
		}
		ok := func(x byte) []byte { return []byte{members.AnswerOK, x} }
		ask(0, 1, 1, serve(ok(1), nil))
		ask(0, 2, 2, serve(ok(2), nil))
		ask(7, 3, 3, serve(ok(3), nil))
		ask(7, 3, 3, serve(ok(4), nil))
		ask(8, 5, 4, serve(ok(5), nil))
		ask(9, 'x', 5, serve(errorAnswer(api.Errorf(codes.NotFound, "x")), nil))
		ask(9, 'x', 5, serve(ok(6), nil))
		ask(10, 'x', 6, serve(errorAnswer(api.Errorf(codes.Unavailable, "x")), nil))
		ask(10, 7, 7, serve(ok(7), nil))
		ask(11, members.AnswerNotHere, 8, serve([]byte{members.AnswerNotHere}, nil))
		ask(11, 8, 9, serve(ok(8), nil))

		let := make(chan struct{})
		both := make(chan byte, 2)
		for range 2 {
			go func() {
				got, err := r.once(t.Context(), 12, func() ([]byte, error) { served++; <-let; return ok(9), nil })
				if err != nil {
					t.Error(err)
				}
				both <- got[1]
			}()
		}
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.once(ended, 12, serve(ok(1), nil)); err == nil {
			t.Error("somebody who does not wait got an answer")
		}
		close(let)
		if a, b := <-both, <-both; a != 9 || b != 9 || served != 10 {
			t.Errorf("%d and %d, served %d times", a, b, served)
		}
		for n := range uint64(repeatsKept + 10) {
			if _, err := r.once(t.Context(), 1000+n, serve(make([]byte, 1+n), nil)); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.by) != repeatsKept || len(r.order) != repeatsKept {
			t.Errorf("%d answers are kept, want %d", len(r.by), repeatsKept)
		}
		for range 9 {
			served = 0
			if _, err := r.once(t.Context(), 1<<40, serve(make([]byte, repeatsOctets), nil)); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.by) != 1 || r.octets != repeatsOctets {
			t.Errorf("%d answers of %d octets are kept", len(r.by), r.octets)
		}
	})
}
