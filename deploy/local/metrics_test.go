package local_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
)

// measuring runs a service that registers figures, and calls use with them.
func measuring(t testing.TB, r prometheus.Registerer, use func(weft.Metrics)) (stop func() error) {
	t.Helper()
	return start(t, local.Config{Registry: r, Specs: []weft.Spec{{Name: "hosts", Run: func(ctx context.Context, env *weft.Env) error {
		use(env.Metric)
		return weft.Serve(ctx, env)
	}}}})
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 { // a worker leaves nothing behind that troubles the next
		stop := measuring(t, registry, func(m weft.Metrics) {
			m.Counter("refused", "Hosts refused.", "reason", "limit").Add(2)
			m.Counter("refused", "Hosts refused.", "reason", "limit").Add(1)
			m.Counter("refused", "Hosts refused.", "reason", "spoofed").Add(5)
			m.Gauge("known", "Hosts known.", func() float64 { return 7 })
			m.Gauge("known", "Hosts known.", func() float64 { return 8 }) // replaces
			m.CounterFunc("moves", "Moves.", func() float64 { return 9 })
			h := m.Histogram("delay", "Delays.", []float64{1, 10})
			h.Observe(0.5)
			h.Observe(5)
		})
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), "weft_hosts_") {
				continue
			}
			for _, m := range f.GetMetric() {
				label := ""
				if len(m.GetLabel()) > 0 {
					label = m.GetLabel()[0].GetValue()
				}
				got = append(got, fmt.Sprint(f.GetName(), " ", label, " ",
					m.GetCounter().GetValue()+m.GetGauge().GetValue()+m.GetHistogram().GetSampleSum()))
			}
		}
		want := []string{"weft_hosts_delay  5.5", "weft_hosts_known  8", "weft_hosts_moves  9", "weft_hosts_refused limit 3", "weft_hosts_refused spoofed 5"}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	if families, err := registry.Gather(); err != nil || len(families) != 0 {
		t.Errorf("after the end: %v, %v; want nothing", families, err)
	}
}

func TestMetricMistakes(t *testing.T) {
	for want, use := range map[string]func(weft.Metrics){
		"a name is lower-case":         func(m weft.Metrics) { m.Counter("Bad-Name", "") },
		"give a value after each":      func(m weft.Metrics) { m.Counter("a", "", "label") },
		"is asked for as a":            func(m weft.Metrics) { m.Counter("a", "A."); m.Gauge("a", "A.", func() float64 { return 0 }) },
		"metric weft_hosts_a{x=\"1\"}": func(m weft.Metrics) { m.Counter("a", "A."); m.Counter("a", "A.", "x", "1") },
	} {
		t.Run(want, func(t *testing.T) {
			err := run(t, local.Config{Specs: []weft.Spec{{Name: "hosts", Run: func(ctx context.Context, env *weft.Env) error {
				use(env.Metric)
				return nil
			}}}})
			wantError(t, err, "service hosts: panic in Run", want)
		})
	}
}

func BenchmarkCounter(b *testing.B) {
	var counter weft.Counter
	measuring(b, nil, func(m weft.Metrics) { counter = m.Counter("a", "A.") })
	b.ReportAllocs()
	for b.Loop() {
		counter.Add(1)
	}
}
