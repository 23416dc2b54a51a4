package bench

import (
	"math"
	"testing"
)

// A cell where the formula is far off: the answer is not.
func TestBenchSize(t *testing.T) {
	r, err := benchSize(t.Context(), 1, []benchSizeCell{{Stations: 1, Load: 0.8, ArrivalSCV: 1, ServiceSCV: 1}, {Stations: 4, Load: 0.8, ArrivalSCV: 4}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Within2Percent != 2 || len(r.Formula) != 2 || r.Formula[0].Within5 != 1 || r.Formula[1].Within10 != 0 || math.Abs(r.Cells[0].Simulated-5) > 0.1 {
		t.Errorf("%+v", r)
	}
	if n := len(benchSizeGrid()); n != 75 {
		t.Errorf("%d cells", n)
	}
}
