package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/plan"
)

const autoscaled = `name: p
workers:
  switches: {services: [southbound, discovery, gateway]}
  routing:
    services: [paths, forwarding]
    replicas: 2
    cpu_quota: 0.25
    autoscale: {min: 1, max: 4, target: 2ms, season: 10m}
`

func TestAutoscale(t *testing.T) {
	p := parse(t, autoscaled)
	w := p.Worker("routing")
	if a := w.Autoscale; w.CPUQuota != 0.25 || a == nil || *a != (plan.Autoscale{Min: 1, Max: 4, Target: 2 * time.Millisecond, Percentile: 99, Cooldown: 30 * time.Second, Season: 10 * time.Minute}) {
		t.Fatalf("%+v, %+v", w, a)
	}
	text, err := p.YAML()
	if err != nil || !parse(t, string(text)).Equal(p) {
		t.Errorf("%v\n%s", err, text)
	}
	var changes []string
	for _, c := range plan.Diff(parse(t, strings.Replace(autoscaled, "    autoscale: {min: 1, max: 4, target: 2ms, season: 10m}\n", "", 1)), p.WithReplicas("routing", 3)) {
		changes = append(changes, c.String())
	}
	if got := strings.Join(changes, "\n"); got != "~ worker routing: replicas 2 -> 3\n~ worker routing: autoscale none -> 1 to 4 for 2ms (99 %), cooldown 30s, season 10m0s" {
		t.Error(got)
	}
	if p.Worker("routing").Replicas != 2 {
		t.Error("WithReplicas has changed the plan that it was called on")
	}
	if err := p.Check(network()); err != nil {
		t.Error(err)
	}
}

func TestAutoscaleMistakes(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"0.25", "0", "p.yaml:7: workers.routing.cpu_quota: want a share of a processor, 0.01 to 4096, not 0"},
		{"0.25", "much", "p.yaml:7: workers.routing.cpu_quota: want a number, such as 0.25 or 99, not"},
		{"0.25", "NaN", "p.yaml:7: workers.routing.cpu_quota: want a"},
		{"cpu_quota: 0.25", "cpu_quota: 0.25\n    class: realtime", "p.yaml:7: workers.routing.cpu_quota: real-time work has no quota"},
		{"min: 1", "min: 0", "p.yaml:8: workers.routing.autoscale.min: want 1 to 256, not 0"},
		{"max: 4", "max: 0", "workers.routing.autoscale.max: want min, 1, to 256, not 0"},
		{"max: 4, ", "", "workers.routing.autoscale: no max; say how many replicas there may be"},
		{"max: 4", "max: 1", "workers.routing.autoscale: the worker starts with 2 replicas; set replicas to 1 to 1"},
		{"2ms", "0s", "workers.routing.autoscale.target: want 10µs to 1h0m0s, not 0s"},
		{"2ms", "soon", "workers.routing.autoscale.target: want a time, such as 500ms or 30s, not"},
		{"10m", "10s", "workers.routing.autoscale.season: want 1m0s to 192h0m0s, not 10s"},
		{"season: 10m", "percentile: 100", "workers.routing.autoscale.percentile: want 1 to 99.99, or 0 for the mean, not 100"},
		{"season: 10m", "cooldown: 1ms", "workers.routing.autoscale.cooldown: want 1s to 24h0m0s, not 1ms"},
		{"season: 10m", "often: true", "unknown key workers.routing.autoscale.often"},
		{"{min: 1, max: 4, target: 2ms, season: 10m}", "yes", "workers.routing.autoscale: want keys with values"},
		{"replicas: 2", "standby: 1", "workers.routing.autoscale: the worker has a standby"},
		{"replicas: 2", "listen: \"127.0.0.1:7000\"", "workers.routing.listen: 4 replicas cannot all listen at 127.0.0.1:7000"},
		{"[paths, forwarding]", "[paths, discovery, forwarding]", "workers.routing.autoscale: discovery cannot run in any number"},
	} {
		text := strings.Replace(autoscaled, c.old, c.new, 1)
		p, err := plan.Parse("p.yaml", []byte(text))
		if err == nil {
			err = p.Check(network())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.new, err, c.want)
		}
	}
}

func TestKeepScale(t *testing.T) {
	p := parse(t, autoscaled)
	for running, want := range map[int]int{1: 1, 3: 3, 9: 4} {
		if got := p.KeepScale(p.WithReplicas("routing", running)).Worker("routing").Replicas; got != want {
			t.Errorf("%d replicas run: %d are kept, want %d", running, got, want)
		}
	}
	fixed := parse(t, strings.Replace(autoscaled, "    autoscale: {min: 1, max: 4, target: 2ms, season: 10m}\n", "", 1))
	if got := p.KeepScale(fixed.WithReplicas("routing", 3)).Worker("routing").Replicas; got != 2 {
		t.Errorf("%d replicas of a worker that was not autoscaled, want those of the plan, 2", got)
	}
}
