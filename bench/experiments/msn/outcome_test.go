package msn

import (
	"math"
	"strconv"
	"testing"
)

// row returns a sample of a resilience run.
func row(kind string, at float64, value string) []string {
	return []string{"ws", "1", kind, strconv.FormatFloat(at, 'f', -1, 64), value}
}

func TestOutcome(t *testing.T) {
	var rows [][]string
	for i := range 100 { // one every 0.1 s; killed at 5 s, started again at 5.5 s, the backlog answered at 6 s
		at := float64(i) / 10
		delay := "1"
		switch {
		case at >= 5 && at < 6:
			delay = strconv.FormatFloat((6-at)*1000, 'f', -1, 64)
		case i == 80 || i == 81 || i == 82:
			delay = ""
		}
		rows = append(rows, row(kindControl, at, delay), row(kindData, at, "0.5"))
	}
	rows = append(rows, row(kindData, 9.95, ""), row(kindKilled, 5, "77"), row(kindRestarted, 5.5, "78"),
		row(kindShed, 0, "2"), row(kindDuplicate, 0, "1"), []string{"rest", "1", kindControl, "1", "1"}, []string{"ws", "2", kindControl, "1", "1"})
	o := flightOf(rows, "ws", "1").outcome("ws")
	want := outcome{
		Transport: "ws", Sent: 100, Answered: 97, Shed: 2, Lost: 1, Duplicates: 1, DataSent: 101, DataLost: 1, Restart: 0.5, Recovery: 0.5,
		ControlBefore: 1, ControlPeak: 1000, ControlAfter: 1, DataBefore: 0.5, DataPeak: 0.5, DataAfter: 0.5,
	}
	if o != want {
		t.Errorf("got  %+v\nwant %+v", o, want)
	}
	if mean, longest := binned([]point{{0.001, 1}, {0.002, 3}, {0.06, -1}, {0.12, 2}}, "ws"); len(mean) != 2 || mean[0].Y != 2 || longest[0].Y != 3 || mean[1].Y != 2 {
		t.Errorf("by time: %v, %v", mean, longest)
	}
}

// TestShedCounts sees to it that what others have shed hides no loss of ours,
// and that a counter that starts over counts from there.
func TestShedCounts(t *testing.T) {
	const name = "weft_deploy_packets_shed_total"
	for _, test := range []struct{ before, after, want float64 }{{3, 5, 2}, {3, 3, 0}, {9, 4, 4}} {
		if got := shed(map[string]float64{name: test.before}, map[string]float64{name: test.after, "other": 7}); got != int(test.want) {
			t.Errorf("from %v to %v: %d shed, want %v", test.before, test.after, got, test.want)
		}
	}
	o := flightOf([][]string{row(kindControl, 1, "1"), row(kindControl, 2, ""), row(kindShed, 0, "40")}, "ws", "1").outcome("ws")
	if o.Shed != 1 || o.Lost != 0 {
		t.Errorf("%d shed and %d lost of one that was not answered", o.Shed, o.Lost)
	}
}

func TestShares(t *testing.T) {
	for _, n := range []int{2, 3} {
		seen := map[string]bool{}
		for _, share := range shares(n) {
			for _, sw := range share {
				if sw == "rest" {
					continue
				}
				if seen[sw] {
					t.Errorf("%d shares: switch %s is in two", n, sw)
				}
				seen[sw] = true
			}
		}
		if len(seen) != 15 || len(shares(n)) != n {
			t.Errorf("%d shares: %d of 15 switches in %d shares", n, len(seen), len(shares(n)))
		}
	}
}

// What the explanation of Fig. 14 says of the paths is so.
func TestCrossed(t *testing.T) {
	want := map[string][3]int{"H1-H2": {1, 1, 1}, "H1-H3": {1, 1, 1}, "H1-H5": {1, 1, 2}, "H1-H16": {1, 2, 2}}
	for _, p := range fig13Paths() {
		for i, n := range want[p.name] {
			if got := p.crossed(i + 1); got != n {
				t.Errorf("%s crosses %d of %d network services, want %d", p.name, got, i+1, n)
			}
		}
	}
}

func TestRecovered(t *testing.T) {
	every := func(delays ...float64) (list []point) {
		for i, d := range delays {
			for j := range 100 {
				at := float64(i)/10 + float64(j)/1000
				list = append(list, point{at, d})
			}
		}
		return list
	}
	for name, test := range map[string]struct {
		list []point
		want float64
	}{
		"at once":               {every(1, 1, 1, 1, 1), 0.15},
		"after a backlog":       {every(1, 50, 50, 1, 1, 1), 0.349},
		"and late once again":   {every(1, 50, 1, 1, 1, 50, 1), 0.249},
		"a moment is too short": {every(1, 50, 1, 50, 1, 1, 1), 0.449},
		"never":                 {every(1, 50, 50, 50), 0.449},
		"not answered":          {every(1, -1, -1, 1, 1, 1), 0.3},
	} {
		if got := recovered(test.list, 0.1, 0.15, 20); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: recovered at %v, want %v", name, got, test.want)
		}
	}
}

func TestTargetsAreInOrder(t *testing.T) {
	list := []string{"unix:/x/ctl10.sock", "unix:/x/ctl2.sock", "unix:/x/ctl.sock", "unix:/x/ctl1.sock"}
	sortTargets(list)
	if list[0] != "unix:/x/ctl.sock" || list[2] != "unix:/x/ctl2.sock" || list[3] != "unix:/x/ctl10.sock" {
		t.Errorf("got %q", list)
	}
}
