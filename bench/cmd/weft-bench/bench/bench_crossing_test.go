package bench

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bench/sim"
)

func TestBenchAdded(t *testing.T) {
	base := []benchRound{{P50US: 10}, {P50US: 30}, {P50US: 12}}
	rounds := []benchRound{{P50US: 25}, {P50US: 44}, {P50US: 40}}
	if got := benchAdded(rounds, base, func(b benchRound) float64 { return b.P50US }); got.Median != 15 {
		t.Errorf("added %v, want the median of 15, 14 and 28", got)
	}
	if got := benchAdded(nil, base, func(b benchRound) float64 { return b.P50US }); !math.IsNaN(got.Median) {
		t.Errorf("added %v by no rounds", got)
	}
}

func TestBenchCrossingReport(t *testing.T) {
	subject := func(p50, p99 float64) *benchSubject {
		return &benchSubject{rounds: []benchRound{{P50US: p50, P99US: p99}}, latency: sim.NewHistogram()}
	}
	r := newBenchCrossing(benchCrossingConfig{transports: []string{"grpc", "rest", "nats"}, rounds: 1},
		[]*benchSubject{subject(10, 20), subject(45, 70), subject(150, 300), subject(90, 100)}, map[string]*benchBare{"grpc": {rounds: []float64{25}}})
	var text strings.Builder
	if err := r.write(&text, "table"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"added to the median by grpc, µs: 35.00, at most 40: met", "that to a bare ping-pong of grpc: 1.40, at most 1.3: MISSED", "added to the median by rest, µs: 140.00, at most 100: MISSED"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if len(r.Transports) != 3 || r.Transports[0].AddedP99US != 50 || r.Transports[2].Bound != nil {
		t.Errorf("transports %+v", r.Transports)
	}
	text.Reset()
	if err := r.write(&text, "json"); err != nil || !strings.Contains(text.String(), `"added_p50_us": 35`) {
		t.Errorf("%v, JSON %s", err, text.String())
	}
}

// TestBenchBare: each bare ping-pong answers, and says how long that takes.
func TestBenchBare(t *testing.T) {
	for _, transport := range benchBares {
		address := fmt.Sprintf("@weft-bare-test-%d-%s", os.Getpid(), transport)
		go func() { _ = benchPong(transport, address) }() // ends with the tests
		trip, err := benchBareTrip(t.Context(), transport, address)
		if err != nil {
			t.Fatal(err)
		}
		took, err := benchTrips(trip, time.Millisecond)
		if err != nil || len(took) == 0 || slices.Min(took) <= 0 {
			t.Errorf("%s: %v, %v", transport, took, err)
		}
	}
	if _, err := benchBareTrip(t.Context(), "rest", ""); err == nil {
		t.Error("a bare ping-pong of rest")
	}
}

func TestParseBenchSplit(t *testing.T) {
	for text, want := range map[string]benchSplit{"grpc": {Transport: "grpc", Replicas: 1}, "ws:3": {Transport: "ws", Replicas: 3}} {
		if got, err := parseBenchSplit(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "tcp", "grpc:", "grpc:0", "grpc:x", "grpc:17"} {
		if _, err := parseBenchSplit(text); err == nil {
			t.Errorf("--split %q is taken", text)
		}
	}
}
