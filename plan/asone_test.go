package plan_test

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/plan"
)

// TestCheckAsOne: a service whose instances tell each other what they do may be
// each partition's own in one network, where any answers for all; some partitions
// having it and others not, or both ways, is refused.
func TestCheckAsOne(t *testing.T) {
	specs := network()
	for i := range specs {
		switch s := &specs[i]; s.Name {
		case "forwarding":
			s.Serves, s.Publishes = methods("forwarding.ListRoutes"), subjects("forwarding.RoutesShared")
			s.Subscribes = append(s.Subscribes, subjects("forwarding.RoutesShared")...)
		case "gateway":
			s.Calls = append(s.Calls, methods("forwarding.ListRoutes")...)
		}
	}
	const base = `partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}
workers:
  east: {partition: east, services: [southbound]}
  west: {partition: west, services: [southbound], settings: {southbound: {listen: [unix:/a]}}}
`
	const each = "  a: {partition: east, services: [forwarding]}\n  b: {partition: west, services: [forwarding]}\n"
	for _, c := range []struct{ name, text, want string }{
		{"in each", base + each + "  all: {services: [discovery, paths, gateway]}\n", "no mistake"},
		{"replicated", base + strings.Replace(each, "[forwarding]", "[forwarding], replicas: 3", 1) + "  all: {services: [discovery, paths, gateway]}\n", "no mistake"},
		{"with its paths", base + strings.ReplaceAll(each, "[forwarding]", "[paths, forwarding]") + "  all: {services: [discovery, gateway]}\n", "no mistake"},
		{"for all", base + "  all: {services: [discovery, paths, forwarding, gateway]}\n", "no mistake"},
		{"in one", base + "  a: {partition: east, services: [forwarding]}\n  all: {services: [discovery, paths, gateway]}\n",
			"p.yaml:1: partitions.west: no forwarding, though others have it for themselves (a), and it works with the help of all; add forwarding to workers.west.services"},
		{"both ways", base + each + "  all: {services: [discovery, paths, gateway, forwarding]}\n",
			"p.yaml:7: workers.all.services: forwarding is in a worker for all partitions and in workers of single ones (a, b), so that two would work for the same switches; have it in one way only"},
		{"its paths in one", base + each + "  p: {partition: east, services: [paths]}\n  all: {services: [discovery, gateway]}\n",
			"p.yaml:6: workers.b.services: forwarding calls paths.FindPath, but paths is in workers of other partitions only (p); add paths to workers.west.services, or to a worker of no partition"},
		{"networks by themselves", `partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}
workers:
  east: {partition: east, services: [southbound, discovery, paths, forwarding]}
  west: {partition: west, services: [southbound, discovery, paths, forwarding], settings: {southbound: {listen: [unix:/a]}}}
  front: {services: [gateway]}
`, "p.yaml:5: workers.front.services: gateway calls forwarding.ListRoutes, but forwarding runs per partition (east, west), and worker front is of none, so that nobody knows which of them is meant; put one gateway into a worker of each partition"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.Parse("p.yaml", []byte(c.text))
			if err == nil {
				err = p.Check(specs)
			}
			wantText(t, err, c.want)
		})
	}

	// Each hears both southbounds, and the other.
	p := parse(t, base+each+"  all: {services: [discovery, paths, gateway]}\n")
	var hears []string
	for _, x := range p.Traffic(specs) {
		if x.To == "a" {
			hears = append(hears, x.From+": "+strings.Join(x.Events, " "))
		}
	}
	if got, want := strings.Join(hears, "; "), "b: forwarding.RoutesShared; east: southbound.SwitchChanged; west: southbound.SwitchChanged"; got != want {
		t.Errorf("a hears %q, want %q", got, want)
	}
}
