package qos

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weft-sdn/weft/api"
)

// TestCVE_2018_1000615_OVSDBAnswers: whatever a database answers, it is an error
// or is passed over, and nothing of it is passed on but what has the form of a
// uuid or of one plain word. (ONOS's OVSDB component, which also listened, ended
// by what it was sent; Weft listens for no database.)
func TestCVE_2018_1000615_OVSDBAnswers(t *testing.T) {
	answers := []string{
		"", "\n", "[]", "{}", "null", "br1", `"` + sw1 + `"`, ourQoS, strings.Repeat("[", 2_000), `{"data":null}`, `{"data":[]}`, `{"data":[[]]}`, `{"data":[[null]]}`,
		`{"data":[[1,2,3]]}`, `{"data":{"a":1}}`, `{"data":[[["uuid","` + ourQoS + `"]]]}`, `{"data":[[["uuid","` + ourQoS + `"],["map",[["weft-sum"]]],["map",[[1]]]]]}`,
		`{"data":[[["uuid","--db=x"],["map",[["weft-sum","a b"]]],["map",[[1,["uuid","; reboot"]]]]]]}`, "-- destroy qos", "--db=tcp:10.0.0.1:1", "a\x00b", "\xff\xfe",
		`{"data":[[["uuid","` + ourQoS + `"],["map",[["weft-sum","x"]]],["map",[[1,["uuid","` + ourQueue + `"]]]]]]}`, strings.Repeat("9", 5_000),
	}
	r := rand.New(rand.NewPCG(1000615, 2018))
	done, failed := 0, 0
	for range 3_000 {
		run := func(_ context.Context, args ...string) (string, error) {
			for _, a := range args {
				if !utf8.ValidString(a) || strings.ContainsAny(a, "\x00\n ;") || strings.HasPrefix(a, "--db") || len(a) > 200 {
					t.Fatalf("passed on: %q", args)
				}
			}
			if args[0] == "port-to-br" && r.IntN(4) > 0 {
				return "br1\n", nil
			}
			if args[0] == "get" && args[1] == "bridge" && r.IntN(4) > 0 {
				return `"` + sw1 + `"`, nil
			}
			return answers[r.IntN(len(answers))], nil
		}
		m := &api.QosQueues{Dpid: sw1, Port: 1, MaxKbps: 5, Queues: []*api.QosQueue{{Id: 1, MaxKbps: 2}}}
		if r.IntN(2) == 0 {
			m.State = removing
		}
		if err := bring(context.Background(), run, m, "s1-h1"); err != nil {
			failed++
		} else {
			done++
		}
	}
	if done == 0 || failed == 0 {
		t.Errorf("%d done, %d failed: want some of each", done, failed)
	}
}
