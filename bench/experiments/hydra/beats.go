package hydra

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/sim"
)

// beatCounts are what the service heartbeat has counted: beats, those missed,
// and how many of those answered took at most a time, by its upper bounds.
type beatCounts struct {
	beats, missed float64
	buckets       map[float64]float64 // by bound in seconds
}

// controllerBeats reads them off the controller's metrics.
func (s *slice) controllerBeats(ctx context.Context) (beatCounts, error) {
	// The service brings its metrics up to date when it is asked.
	if _, err := api.NewHeartbeatClient(s.north).ListHeartbeats(ctx, &api.ListHeartbeatsRequest{Dpid: s.topo.Switches[0].DPID.String()}); err != nil {
		return beatCounts{}, fmt.Errorf("ask the controller for its heartbeats: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.control.North[0]+"/metrics", nil)
	if err != nil {
		return beatCounts{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return beatCounts{}, fmt.Errorf("read the controller's metrics: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return beatCounts{}, fmt.Errorf("read the controller's metrics: %s %v", resp.Status, err)
	}
	return parseBeats(string(text)), nil
}

// parseBeats reads the figures of heartbeats (Prometheus text format).
func parseBeats(text string) beatCounts {
	c := beatCounts{buckets: map[float64]float64{}}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "weft_heartbeat_")
		at := strings.LastIndexByte(rest, ' ')
		if !ok || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(rest[at+1:], 64)
		if err != nil {
			continue
		}
		switch name := rest[:strings.IndexAny(rest, "{ ")]; name {
		case "beats_total":
			c.beats += value
		case "missed_total":
			c.missed += value
		case "latency_seconds_bucket":
			_, le, _ := strings.Cut(rest, `le="`)
			le, _, _ = strings.Cut(le, `"`)
			if bound, err := strconv.ParseFloat(le, 64); err == nil {
				c.buckets[bound] += value
			}
		}
	}
	return c
}

// add adds what has come between two readings.
func (c *beatCounts) add(after, before beatCounts) {
	if c.buckets == nil {
		c.buckets = map[float64]float64{}
	}
	c.beats += after.beats - before.beats
	c.missed += after.missed - before.missed
	for bound, n := range after.buckets {
		c.buckets[bound] += n - before.buckets[bound]
	}
}

// figures returns what has become of the beats. Quantiles are upper bounds of what
// they are in, and infinite of what was missed, whose end is not known.
func (c *beatCounts) figures() beatFigures {
	f := beatFigures{due: c.beats, missed: c.missed, over10: c.beats - c.buckets[.01], over100: math.NaN(), max: math.NaN(), behind: math.NaN()}
	at := func(q float64) float64 {
		best := math.Inf(1)
		for bound, n := range c.buckets {
			if n >= q*f.due {
				best = min(best, 1e3*bound)
			}
		}
		return best
	}
	f.p50, f.p95, f.p99, f.p999 = at(.5), at(.95), at(.99), at(.999)
	return f
}

// beatFigures is what became of the heartbeats of a round. What is not known is
// NaN.
type beatFigures struct {
	due, missed, over10, over100 float64
	p50, p95, p99, p999, max     float64 // ms
	behind                       float64 // ms, 99.9th percentile: how late the switches themselves were
}

func (f beatFigures) cells() (list []string) {
	for _, v := range []float64{f.due, f.missed, f.over10, f.over100, f.p50, f.p95, f.p99, f.p999, f.max, f.behind} {
		list = append(list, number(v))
	}
	return list
}

// switchFigures are those of heartbeats that switches have sent.
func switchFigures(r *sim.BeatResult) beatFigures {
	at := func(q float64) float64 { return float64(r.Latency.ValueAtQuantile(q)) / 1e6 }
	return beatFigures{
		due: float64(r.Due), missed: float64(r.Lost), over10: float64(over(r.Latency, 10*time.Millisecond)), over100: float64(over(r.Latency, 100*time.Millisecond)),
		p50: at(50), p95: at(95), p99: at(99), p999: at(99.9), max: float64(r.Latency.Max()) / 1e6, behind: float64(r.Behind.ValueAtQuantile(99.9)) / 1e6,
	}
}

// over returns how many values of a histogram are above a time.
func over(h *hdrhistogram.Histogram, limit time.Duration) (n int64) {
	for _, bar := range h.Distribution() {
		if bar.From > int64(limit) {
			n += bar.Count
		}
	}
	return n
}

// number writes a figure for a sample; nothing if there is none.
func number(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// ms writes nanoseconds as milliseconds.
func ms(ns int64) string { return number(float64(ns) / 1e6) }
