package flow

import "testing"

// TestRecent: what was put last is found, with its value, and nothing else is;
// as many keys as are in use come to fit, up to the bound.
func TestRecent(t *testing.T) {
	for _, c := range []struct{ keys, most, rounds, found, room int }{
		{50, 4096, 20, 30, 128},
		{1000, 4096, 40, 870, 4096},
		{1000, 256, 40, 0, 256},
		{3000, 4096, 40, 0, 4096},
	} {
		var r Recent[uint64, int]
		found := 0
		for range c.rounds {
			found = 0
			for k := range uint64(c.keys) {
				v := r.Get(k+1, Spread(k+1))
				switch {
				case v == nil:
					r.Put(k+1, Spread(k+1), int(k), c.most)
				case *v != int(k):
					t.Fatalf("%d has the value %d", k, *v)
				default:
					found++
				}
			}
		}
		if found < c.found || r.Room() > c.room {
			t.Errorf("%d keys, room for at most %d: %d are found, in room for %d; want %d, %d", c.keys, c.most, found, r.Room(), c.found, c.room)
		}
	}
}

// TestRecentReplaces: of two keys of a set the older goes.
func TestRecentReplaces(t *testing.T) {
	var r Recent[string, int]
	for i, k := range []string{"a", "b", "c"} {
		r.Put(k, 0, i+1, recentFirst)
	}
	if a, b, c := r.Get("a", 0), r.Get("b", 0), r.Get("c", 0); a != nil || b == nil || *b != 2 || c == nil || *c != 3 {
		t.Errorf("%v %v %v, want the last two", a, b, c)
	}
	if v := r.Get("", 0); v != nil {
		t.Errorf("the zero key has the value %v in a full set", *v)
	}
}

func BenchmarkRecent(b *testing.B) {
	var r Recent[uint64, *int]
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		k := i&1023 + 1
		if h := Spread(k); r.Get(k, h) == nil {
			r.Put(k, h, new(int), 4096)
		}
	}
}

// Addresses that differ in few bits, wherever those are, spread as well as any.
func TestSpread(t *testing.T) {
	for shift := range 55 {
		sets := map[uint64]int{}
		for n := range uint64(1000) {
			sets[Spread(n<<shift)>>53]++
		}
		if len(sets) < 750 { // of 2,048; 792 are expected
			t.Errorf("1,000 numbers at bit %d fall on %d of 2,048 sets", shift, len(sets))
		}
	}
}
