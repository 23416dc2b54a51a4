package plan_test

import (
	"testing"

	"github.com/weft-sdn/weft/plan"
)

// TestCheckPartners: a service whose instances call each other is in workers of
// all partitions of a network, or of none; calls that are not directed cannot be
// made from outside of partitions.
func TestCheckPartners(t *testing.T) {
	specs := network()
	for i := range specs {
		switch specs[i].Name {
		case "paths":
			specs[i].Calls = methods("paths.FindPath")
		case "gateway":
			specs[i].Calls = methods("discovery.ListLinks")
		case "discovery":
			specs[i].Serves = append(specs[i].Serves, methods("discovery.ListLinks")...)
		}
	}
	const base = `partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}
workers:
  east: {partition: east, services: [southbound]}
  west: {partition: west, services: [southbound], settings: {southbound: {listen: [unix:/a]}}}
`
	for _, c := range []struct{ name, text, want string }{
		{"in each", base + "  a: {partition: east, services: [paths]}\n  b: {partition: west, services: [paths]}\n  all: {services: [discovery, forwarding]}\n", "no mistake"},
		{"for all", base + "  all: {services: [discovery, forwarding, paths]}\n", "no mistake"},
		{"in one", base + "  a: {partition: east, services: [paths]}\n  all: {services: [discovery]}\n",
			"p.yaml:1: partitions.west: no paths, though others have it for themselves (a), and it works with the help of all; add paths to workers.west.services"},
		{"both ways", base + "  a: {partition: east, services: [paths]}\n  all: {services: [discovery, paths]}\n",
			"p.yaml:6: workers.all.services: paths is in a worker for all partitions and in workers of single ones (a), so that two would work for the same switches; have it in one way only"},
		{"networks by themselves", `partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}
workers:
  east: {partition: east, services: [southbound, discovery, paths]}
  west: {partition: west, services: [southbound, discovery], settings: {southbound: {listen: [unix:/a]}}}
`, "no mistake"},
		{"not directed", `partitions: {east: {switches: ["1-8"]}, west: {switches: [rest]}}
workers:
  east: {partition: east, services: [southbound, discovery]}
  west: {partition: west, services: [southbound, discovery], settings: {southbound: {listen: [unix:/a]}}}
  front: {services: [gateway]}
`, "p.yaml:5: workers.front.services: gateway calls discovery.ListLinks, but discovery runs per partition (east, west), and worker front is of none, so that nobody knows which of them is meant; put one gateway into a worker of each partition"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.Parse("p.yaml", []byte(c.text))
			if err == nil {
				err = p.Check(specs)
			}
			wantText(t, err, c.want)
		})
	}
}
