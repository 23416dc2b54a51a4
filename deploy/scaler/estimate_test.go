package scaler

import (
	"math"
	"testing"
	"time"
)

// TestEstimate: the service time is that of the load, also after it has ended,
// and follows another load that lasts.
func TestEstimate(t *testing.T) {
	e := Estimate{}.Supposed(0.005)
	if e.Seconds != 0.005 || e.Supposed(1).Seconds != 0.005 {
		t.Fatalf("%+v", e)
	}
	for range 20 {
		e = e.Used(time.Second, 3000, 0.6, 0.6)
	}
	near := func(when string, want float64) {
		t.Helper()
		if math.Abs(e.Seconds/want-1) > 0.02 {
			t.Errorf("%s: %v s, want %v s", when, e.Seconds, want)
		}
	}
	near("under load", 0.0002)
	for range 20 { // routes expire, while few packets come
		e = e.Used(time.Second, 30, 0.3, 0.3)
	}
	near("when the load has ended", 0.0002)
	for range 100 { // below busyEnough
		e = e.Used(time.Second, 3000, 0.05, 0.05)
	}
	near("when idle", 0.0002)
	for range 400 { // fewer, each of which takes longer
		e = e.Used(time.Second, 100, 0.5, 0.5)
	}
	near("under another load", 0.005)
	if one := e.Used(time.Second, 10_000, 0.1, 0.2).Seconds; one < 0.7*e.Seconds-0.0001 {
		t.Errorf("one second changes it from %v to %v s", e.Seconds, one)
	}
}

func TestPlainFigures(t *testing.T) {
	for v, want := range map[float64]string{0.0652: "0.0652", 3: "3", 17.62: "17.6", 999.4: "999", 4190: "4190", 123456.7: "123457", 999.96: "1000"} {
		if got := plain(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}
