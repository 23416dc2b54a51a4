package l2vpn

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestAwaited: after a restart a circuit is as it was, and says what it waits for, until its
// tunnels are known and its switches have said what they have, however late that is. What is
// wrong then shows at once.
func TestAwaited(t *testing.T) {
	kept := wefttest.NewStore()
	clock := time.Unix(1e9, 0)
	now := func() time.Time { return clock }
	old := newTestStoreAt(t, kept, defaults(), now)
	if err := old.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Ends: []string{"1:1", "2:1"}}}}); err != nil {
		t.Fatal(err)
	}
	old.over("c")
	text := old.records()["c"]
	var tunnels []*api.Tunnel
	for _, m := range old.tunnels.known {
		tunnels = append(tunnels, proto.CloneOf(m))
	}
	var b *store
	is := func(state, reason string) {
		t.Helper()
		if m := b.get("c"); m.State != state || (m.Reason == "") != (reason == "") || !strings.Contains(m.Reason, reason) {
			t.Errorf("it is %s, %q; want %s, %q", m.State, m.Reason, state, reason)
		}
	}
	begin := func() {
		b = loadTestStore(t, kept, defaults(), now)
		b.recall("c", text)
	}
	answer := func(sw flow.DPID) {
		wholeOf(b, sw)
		b.answered(sw, nil, nil)
	}

	begin()
	clock = clock.Add(time.Hour)
	is("up", "which tunnels")
	b.learn(tunnels, true)
	is("up", "switch 0000000000000001 has not connected")
	b.connect(1)
	is("up", "switch 0000000000000001 has not said")
	answer(1)
	is("up", "switch 0000000000000002 has not connected")
	b.connect(2)
	clock = clock.Add(time.Hour)
	is("up", "switch 0000000000000002 has not said")
	answer(2)
	is("up", "")
	if n := len(b.status["c"].history); n != len(old.status["c"].history) {
		t.Errorf("%d states in its history, had %d", n, len(old.status["c"].history))
	}

	begin()
	b.learn(tunnels, true)
	b.connect(1)
	b.connect(2)
	b.feed(&api.PortChanged{Port: &api.Port{Dpid: flow.DPID(2).String(), Port: 1}})
	answer(1)
	is("up", "switch 0000000000000002 has not said")
	answer(2)
	is("down", "port 1 of switch 0000000000000002 is down")

	begin()
	b.learn(nil, true)
	b.connect(1)
	answer(1)
	is("up", "switch 0000000000000002 has not connected")
	b.net.returned = true
	b.assessAll()
	is("down", "switch 0000000000000002 is away")
}
