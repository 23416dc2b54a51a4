package run

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
)

// A plan that the scaler applies is in the log of weft up with its reason.
func TestAnnounce(t *testing.T) {
	all := services.All(gateway.Process{})
	p, err := plan.Parse("test", []byte("{name: a, workers: {all: {services: [southbound, gateway]}, routing: {services: [paths], replicas: 2, autoscale: {max: 4}}}}"))
	if err != nil {
		t.Fatal(err)
	}
	old, err := members.Succeed(nil, p, all)
	if err != nil {
		t.Fatal(err)
	}
	next, err := members.Succeed(old, p.WithReplicas("routing", 3), all)
	if err != nil {
		t.Fatal(err)
	}
	next.Why = "3000/s"
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	announce(log, nil, old)
	announce(log, old, old)
	if out.Len() > 0 {
		t.Errorf("nothing has changed: %s", out.String())
	}
	announce(log, old, next)
	for _, want := range []string{"another plan is in force", "generation=2", "worker routing: replicas 2 -> 3", "reason=3000/s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in: %s", want, out.String())
		}
	}
}
