package admission

import (
	"testing"
	"time"
)

// TestLonePort: a port that sends alone is limited only if the processor or the
// queue of its switch is full, and somebody else suffers from that.
func TestLonePort(t *testing.T) {
	probes := load{2, 2, ClassProbes, 1}
	for _, c := range []struct {
		name    string
		by      Pressure
		others  []load
		limited bool
	}{
		{"idle controller", Pressure{}, nil, false},
		{"idle controller, other switches send", Pressure{Elsewhere: 10}, nil, false},
		{"idle controller, probes at another port", Pressure{}, []load{probes}, false},
		{"full, nobody else", Pressure{Full: true}, nil, false},
		{"full, probes at the same port", Pressure{Full: true}, []load{{1, 2, ClassProbes, 1}}, false},
		{"full, probes at another port", Pressure{Full: true}, []load{probes}, true},
		{"full, other switches send little", Pressure{Full: true, Elsewhere: 10}, nil, true},
		{"full, other switches send as much", Pressure{Full: true, Elsewhere: 40_000}, []load{probes}, false},
	} {
		tr := newTrial()
		loads := append([]load{{1, 100_000, classUnicast, 0}}, c.others...)
		tr.run(5*time.Second, c.by, loads...)
		if limited := len(tr.a.Limited) == 1; limited != c.limited {
			t.Errorf("%s: limited %v, want %v", c.name, limited, c.limited)
		} else if !limited {
			tr.whole(t, 1)
		}
	}
}

// TestLimitEndsWithContention: a flood goes on when nobody waits any more, and a
// port that is limited time and again is limited for longer each time.
func TestLimitEndsWithContention(t *testing.T) {
	tr := newTrial()
	flood, other := load{1, 20_000, classUnicast, 0}, load{2, 100, classUnicast, 3}
	for round, lasts := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		tr.run(500*time.Millisecond, Pressure{}, flood, other)
		if len(tr.a.Limited) != 1 {
			t.Fatalf("round %d: not limited while another port sends", round)
		}
		tr.run(lasts-300*time.Millisecond, Pressure{}, flood)
		if len(tr.a.Limited) != 1 {
			t.Errorf("round %d: the limit ended before %v were over", round, lasts)
		}
		tr.run(600*time.Millisecond, Pressure{}, flood)
		if len(tr.a.Limited) != 0 {
			t.Fatalf("round %d: limited %v after the other port has gone quiet", round, lasts)
		}
		tr.reset()
		tr.run(time.Second, Pressure{}, flood)
		tr.whole(t, 1)
	}
}

// TestOnePacketStartsNoLimit: a single packet of another port does not limit a
// busy uplink.
func TestOnePacketStartsNoLimit(t *testing.T) {
	tr := newTrial()
	for range 5 {
		tr.run(time.Second, Pressure{}, load{1, 50_000, classUnicast, 0}, load{2, 1.001, ClassNeighbours, 1})
	}
	tr.whole(t, 1, 2)
}

// TestSending: what other switches send on average is known, and what a switch
// sends itself is not part of it.
func TestSending(t *testing.T) {
	var x Rates
	var a, b, c Rate
	now := int64(time.Hour)
	for range 5 {
		if got := x.Add(now, &a, 0); got != 0 {
			t.Errorf("%v elsewhere, want 0: nobody sends", got)
		}
		now += window
	}
	for range 10 {
		gotA, gotB, gotC := x.Add(now, &a, 90_000), x.Add(now+1, &b, 10), x.Add(now+2, &c, 30)
		now += window
		if now > int64(time.Hour)+8*window && (gotA != 20 || gotB != 45_015 || gotC != 45_005) {
			t.Errorf("%v, %v, %v elsewhere, want 20, 45015, 45005", gotA, gotB, gotC)
		}
	}
	if got := x.Add(now+10*window, &b, 0); got != 0 {
		t.Errorf("%v elsewhere after a second of silence, want 0", got)
	}
}
