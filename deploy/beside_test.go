package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
)

// TestBeside: a service that opens the pipeline beside the one that runs it
// leaves stages out, wherever the others are.
func TestBeside(t *testing.T) {
	specs := append(staged(), weft.Spec{Name: "intake", Beside: stageNames[:1], Scale: weft.Any})
	c := newCluster(t, specs, stageSetup())
	var want []string
	for i, at := range [][]string{
		{"southbound, intake, discovery, hosts, firewall, forwarding", "idle", "idle", "idle"},
		{"southbound, discovery", "intake, hosts", "firewall, forwarding", "idle"},
		{"southbound, discovery, firewall", "intake", "hosts", "forwarding"},
	} {
		c.apply(placed(at...))
		if i == 0 {
			c.startAll()
		}
		c.settled()
		s := open(c.run("intake"), 5)
		s.send(143)
		s.complete(c)
		s.pipeline.Close()
		slices.Sort(s.answers)
		for _, a := range s.answers {
			if strings.HasPrefix(a, "0:") || !strings.HasPrefix(a, "1:") {
				t.Fatalf("%v: stages have left the marks %s", at, a)
			}
		}
		if want == nil {
			want = s.answers
		}
		if !slices.Equal(s.answers, want) {
			t.Errorf("%v: decisions differ from those in one process", at)
		}
	}
}
