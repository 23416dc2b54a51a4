package southbound

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

func TestPartitionAdmits(t *testing.T) {
	for _, c := range []struct {
		switches  []string
		elsewhere map[string][]string
		sw        flow.DPID
		want      string // part of the error; empty: admitted
	}{
		{nil, nil, 5, ""},
		{[]string{"rest"}, nil, 5, ""},
		{[]string{"1-80"}, nil, 0x80, ""},
		{[]string{"1-80"}, nil, 0x81, "switch 0000000000000081 is none of those received here (1-80)"},
		{[]string{"1-8", "00:00:00:00:00:00:00:10"}, nil, 0x10, ""},
		{[]string{"1-8"}, map[string][]string{"west": {"9-20"}, "other": {"rest"}}, 0x10, "is of partition west"},
		{[]string{"1-8"}, map[string][]string{"west": {"9-20"}, "other": {"rest"}}, 0x21, "is of partition other"},
		{[]string{"1-8"}, map[string][]string{"west": {"9-20"}}, 0x21, "add it to southbound.switches"},
		{[]string{"rest"}, map[string][]string{"west": {"9-20"}, "east": {"1"}}, 0x21, ""},
		{[]string{"rest"}, map[string][]string{"west": {"9-20"}, "east": {"1"}}, 1, "is of partition east"},
		{nil, map[string][]string{"west": {"9-20"}}, 8, ""},
		{nil, map[string][]string{"west": {"9-20"}}, 0x20, "is of partition west"},
		{[]string{"0-ffffffffffffffff"}, nil, ^flow.DPID(0), ""},
	} {
		p, err := (&Config{Switches: c.switches, Elsewhere: c.elsewhere}).partition()
		if err != nil {
			t.Fatal(err)
		}
		switch err := p.Admits(c.sw); {
		case c.want == "" && err != nil:
			t.Errorf("%v, %v: %v", c.switches, c.elsewhere, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v, %v: %v; want %q", c.switches, c.elsewhere, err, c.want)
		}
	}
	for wrong, want := range map[string]string{"x": `"x": want a switch or a range`, "8-1": "write 1-8", "": "or rest"} { // flow knows the others
		for _, c := range []Config{{Switches: []string{wrong}}, {Elsewhere: map[string][]string{"west": {wrong}}}} {
			config := defaults()
			config.Switches, config.Elsewhere = c.Switches, c.Elsewhere
			if err := config.Validate(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
	}
}

// TestOtherPartitionRefused: a switch of another partition is refused once it
// has said who it is, before it is asked for any role, and nobody hears of it.
func TestOtherPartitionRefused(t *testing.T) {
	inAllModes(t, "switches: [1-8]\nelsewhere: {west: [rest]}", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 8})
		for range 3 {
			c := w.wire()
			c.send(v13.AppendHello(nil, 1), nil)
			c.want(0)
			c.answer(9, c.want(5))
			if msg, err := c.read(time.Second); err == nil {
				t.Fatalf("message %v to a switch of another partition", msg)
			}
		}
		other := oftest.NewDevice(oftest.Config{DPID: 9}, nil)
		select {
		case <-w.dial(other):
		case <-time.After(testwait.Limit):
			t.Fatal("the switch of another partition is connected after a second")
		}
		wefttest.None(w.h, api.SwitchChangedEvent, 50*time.Millisecond)
		if w.info(9) != nil || len(other.Flows()) != 0 {
			t.Error("the switch of another partition is known, or programmed")
		}
		w.works(8)
		for reason, want := range map[string]float64{"elsewhere": 4, "handshake": 0} {
			if n := w.h.Metric("connections_refused_total", "reason", reason); n != want {
				t.Errorf("%v refused for %s are counted; want %v", n, reason, want)
			}
		}
	})
}
