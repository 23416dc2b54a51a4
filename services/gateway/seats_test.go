package gateway

import (
	"testing"
)

// TestSeats: whoever may change the network gets a seat of one that may not, the
// oldest first, and one seat for each; those of operators stay.
func TestSeats(t *testing.T) {
	s := seats{most: 2}
	var gone []int
	take := func(n int, r role) (leave func(), ok bool) {
		return s.take(caller{role: r}, func() { gone = append(gone, n) })
	}
	first, ok := take(1, roleRead)
	if _, second := take(2, roleRead); !ok || !second {
		t.Fatal("there is room for two")
	}
	if _, ok := take(3, roleRead); ok {
		t.Error("a third reader has a seat")
	}
	for n := 4; n <= 5; n++ {
		if _, ok := take(n, roleOperate); !ok {
			t.Errorf("operator %d has no seat", n)
		}
	}
	if len(gone) != 2 || gone[0] != 1 || gone[1] != 2 || s.len() != 4 {
		t.Errorf("%v were asked to go, %d sit", gone, s.len())
	}
	if _, ok := take(6, roleAdmin); ok {
		t.Error("an operator has the seat of another")
	}
	first()
	if s.len() != 3 {
		t.Errorf("%d sit", s.len())
	}
}
