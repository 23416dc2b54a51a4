package traffic

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Figures of delays of 1 to 100 ms, one packet lost, one without a time.
func TestTrafficFigures(t *testing.T) {
	r := Result{Sent: 102, Received: 101}
	var sent, received []int64
	for i := range int64(102) {
		at := 1e9 + i*2e6
		sent, received = append(sent, at), append(received, at+(i+1)*1e6)
	}
	received[100], received[101] = 0, 0
	r.sum(sent, received)
	if r.Mean != 50.5 || r.Min != 1 || r.P50 != 51 || r.P99 != 100 || r.Max != 100 || r.Unstamped != 1 || r.ArrivalSCV != 0 ||
		math.Abs(r.Loss-1.0/102) > 1e-9 || math.Abs(r.Rate-500) > 1e-6 || r.CI95 < 13 || r.CI95 > 15 {
		t.Errorf("%+v", r)
	}
	none := Result{Sent: 1}
	none.sum([]int64{1}, []int64{0})
	if b, err := json.Marshal(none); err != nil || !strings.Contains(string(b), `"mean_ms":null`) {
		t.Errorf("%s, %v", b, err)
	}
}
