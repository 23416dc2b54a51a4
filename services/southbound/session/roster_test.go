package session

import (
	"fmt"
	"testing"
)

// TestRoster: sessions are found by switch, and all of them are seen once.
func TestRoster(t *testing.T) {
	var r roster
	for i := range dpid(1000) {
		r.Put(i*7919, &Session{channel: channel{DPID: i * 7919}})
	}
	for i := range dpid(500) {
		r.Drop(i * 2 * 7919)
	}
	seen := map[dpid]bool{}
	for sw, s := range r.All() {
		if seen[sw] || s.DPID != sw || r.get(sw) != s {
			t.Errorf("switch %v: %v", sw, s.DPID)
		}
		seen[sw] = true
	}
	if len(seen) != 500 || r.count.Load() != 500 || r.get(0) != nil {
		t.Errorf("%d switches, %d counted, want 500", len(seen), r.count.Load())
	}
}

// BenchmarkJoinAndLeave is a switch that comes and goes beside others that stay.
func BenchmarkJoinAndLeave(b *testing.B) {
	for _, others := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			var r roster
			for i := range others {
				r.Put(dpid(i+1), &Session{channel: channel{DPID: dpid(i + 1)}})
			}
			s := &Session{channel: channel{DPID: 1 << 40}}
			b.ReportAllocs()
			for b.Loop() {
				r.Put(s.DPID, s)
				r.Drop(s.DPID)
			}
		})
	}
}
