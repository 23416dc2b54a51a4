package experiments

import (
	"slices"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/test/testbed"
)

// Unlike controllers get no verdict beside each other.
func TestVerdictOfUnlike(t *testing.T) {
	split := testbed.Split("split", "grpc", 1)
	setups := map[string]Setup{
		"grpc": SetupOf(split, "a ping"), "ws": SetupOf(testbed.Split("other", "ws", 2), "a ping"), "single": SetupOf(nil, "a ping"), "busy": SetupOf(split, "a stream"),
	}
	split = testbed.Split("urgent", "grpc", 1)
	split.Workers[0].Nice, split.Workers[0].CPUs = -15, "0"
	setups["urgent"] = SetupOf(split, "a ping")
	twice := Value(2, .25).OfRatio().Said("twice", "2 times")
	for name, test := range map[string]struct {
		claim Claim
		want  string
		void  string
	}{
		"alike":               {Claim{}.Beside("grpc", "ws"), VerdictContradicts, ""},
		"with itself":         {Claim{}.Beside("busy", "busy"), VerdictContradicts, ""},
		"other services":      {Claim{}.Beside("grpc", "single"), VerdictNone, "unlike are compared: services: discovery, flowrules, forwarding, gateway, hosts, paths, southbound, stats against all of weft up"},
		"another load":        {Claim{}.Beside("grpc", "busy"), VerdictNone, "unlike are compared: load: a ping against a stream"},
		"about the load":      {Claim{}.Beside("grpc", "busy", AboutLoad), VerdictContradicts, ""},
		"priority, processor": {Claim{}.Beside("urgent", "grpc"), VerdictNone, "unlike are compared: priority: nice -15 against as the run itself; processors: 0 against as the run itself"},
	} {
		test.claim.Says = &twice
		claims := []Claim{test.claim.Of(of(1, 1.1, 1.2))}
		compareLike(claims, setups)
		if c := claims[0]; c.Reproduced() != test.want || c.Void != test.void {
			t.Errorf("%s: %s, %q; want %s, %q", name, c.Reproduced(), c.Void, test.want, test.void)
		}
	}
	f := figure.Figure{Panels: []figure.Panel{{Series: []figure.Series{{Points: []figure.Point{{Case: "grpc"}, {Case: "ws"}, {Case: "busy"}, {Case: "urgent"}, {Case: "single"}}}}}}}
	if notes := unlikeNotes(f, setups); !slices.Equal(notes, []string{"Not as grpc in load: busy.", "Not as grpc in priority, processors: urgent.", "Not as grpc in services: single."}) {
		t.Errorf("beside each other in a figure: %q", notes)
	}
	if !setups["single"].Declared() || (Setup{Load: "some"}).Declared() {
		t.Error("a setup is declared if all of it is there")
	}
}
