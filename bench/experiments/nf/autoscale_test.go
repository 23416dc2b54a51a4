package nf

import (
	"strconv"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bench/experiments/experimentstest"
	"github.com/weft-sdn/weft/test/testbed"
)

func TestAutoscale(t *testing.T) {
	s := experimentstest.Rehearse(t, autoscale(), func(name string, round int) (rows [][]string) {
		for i := range 120 {
			late := "1"
			if name == caseOf("day", scalerThreshold) {
				late = "3"
			}
			rows = append(rows, []string{strconv.Itoa(i), "100", late, "0", strconv.Itoa(1 + i*3/120)})
		}
		return rows
	})
	list := s.Figures["by_load"].([]byLoad)
	if len(list) != 12 {
		t.Fatalf("%d loads and scalers, want 12", len(list))
	}
	for _, b := range list {
		// The rehearsal has 120 s of each period; a day has 600.
		seconds := 120.0
		if b.Load == "day" {
			seconds = 600
		}
		want := seconds
		if b.Load == "day" && b.Scaler == scalerThreshold {
			want = 3 * seconds
		}
		if b.Violations != want || b.InstanceSeconds != 2*seconds || b.Lost != 0 || b.Sent != 100*seconds || (b.Scaler == scalerThreshold) != (b.Threshold > 0) {
			t.Errorf("%+v", b)
		}
	}
	met := 0
	for _, c := range s.Claims {
		if c.Mark == nil || !(c.Ours <= *c.Mark.AtMost) {
			t.Errorf("%s: %v, want at most the mark", c.What, c.Ours)
		}
		met++
	}
	if met != 12+16 {
		t.Errorf("%d claims, want 28", met)
	}
}

// Messages count in the second in which they were due.
func TestSeconds(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(due, answered float64) testbed.Message {
		m := testbed.Message{Due: began.Add(time.Duration(due * 1e9))}
		if answered > 0 {
			m.Answered = began.Add(time.Duration(answered * 1e9))
		}
		return m
	}
	rows := seconds(began, []testbed.Message{at(0.1, 0.11), at(0.2, 0.3), at(1.5, 0), at(1.9, 1.91)}, []float64{1, 2})
	want := [][]string{{"0", "2", "1", "0", "1.00"}, {"1", "2", "1", "1", "2.00"}}
	for i := range want {
		for k := range want[i] {
			if rows[i][k] != want[i][k] {
				t.Errorf("second %d: %v, want %v", i, rows[i], want[i])
			}
		}
	}
}
