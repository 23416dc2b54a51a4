package l2vpn

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestFloodOfAddresses: an end that sends frames of ever new addresses is not listened to for a
// while: its switch sends none of them to the controller, and no more of its addresses are known
// than l2vpn allows in a second. Other ends, also of the same port, are learnt from meanwhile.
func TestFloodOfAddresses(t *testing.T) {
	now := time.Unix(1e9, 0)
	b := newTestStoreAt(t, wefttest.NewStore(), defaults(), func() time.Time { return now })
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Type: vpls, Ends: []string{"1:1.5", "1:1.6", "1:2"}, MaxMacs: 60_000}}}); err != nil {
		t.Fatal(err)
	}
	s := b.status["c"]
	send := func(i int, src flow.MAC) {
		in := wefttest.NewPacketIn(1, s.circuit.ends[i].at.Port, frame(end{}, src, everybody, 1))
		in.Table, in.Cookie, in.Key.TunnelID = flow.TableCircuits, flow.NewCookie(flow.OwnerCircuits, 0, 0), s.circuit.came(i)
		if v := b.packet(in); v != flow.Done {
			t.Fatalf("the stage says %v", v)
		}
	}
	heard := func(i int) bool {
		t.Helper()
		for _, f := range wholeOf(b, 1).Flows {
			_, e, _ := f.Entry()
			if e.Table == flow.TableCircuits && e.Priority == flow.PriorityLANUnknown && e.Match.Key.TunnelID == s.circuit.came(i) {
				return len(e.Apply) > 0
			}
		}
		t.Fatalf("end %v has no entry for unknown senders", s.circuit.ends[i])
		return false
	}
	flood := func() {
		t.Helper()
		for n := range 5000 {
			send(0, flow.MAC{2, 7, byte(n >> 8), byte(n), byte(now.Unix() >> 8), byte(now.Unix())})
		}
		b.spread(false)
		if heard(0) {
			t.Error("the end that floods is listened to")
		}
	}
	flood()
	if n := len(s.lan.known); n != learnRate {
		t.Errorf("%d addresses are known of one second of a flood, want %d", n, learnRate)
	}
	for i := 1; i < 3; i++ {
		send(i, flow.MAC{2, 8, byte(i)})
		if x := s.lan.known[flow.MAC{2, 8, byte(i)}]; x == nil || x.at != s.circuit.ends[i] || !heard(i) {
			t.Errorf("end %v is not learnt from beside the flood", s.circuit.ends[i])
		}
	}
	now = now.Add(quietTime / 2)
	if b.spread(true); heard(0) {
		t.Error("the end that floods is listened to before its time")
	}
	now = now.Add(quietTime)
	if b.spread(true); !heard(0) {
		t.Error("the end is not listened to again")
	}
	flood()
	if n := len(s.lan.known); n != 2*learnRate+2 {
		t.Errorf("%d addresses are known of two seconds of a flood", n)
	}
}

// TestStrayProbe: a probe of an earlier run, whose key is lost, and a frame of a circuit
// that is gone come to no stage behind: their source is no host. Other packets go on.
func TestStrayProbe(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	for _, c := range []struct {
		name   string
		owner  flow.Owner
		table  uint8
		tunnel uint64
		want   flow.Verdict
	}{
		{"probe", flow.OwnerCircuits, flow.TableLabels, 0, flow.Done},
		{"first table", flow.OwnerCircuits, 0, 0, flow.Done},
		{"circuit that is gone", flow.OwnerCircuits, flow.TableCircuits, lanBit | 7, flow.Done},
		{"frame of a host", flow.OwnerForwarding, flow.TableForward, 0, flow.Next},
	} {
		in := wefttest.NewPacketIn(1, 2, frame(end{}, flow.MAC{2, 'W', 1, 2, 3, 4}, everybody, 1))
		in.Table, in.Cookie, in.Key.TunnelID = c.table, flow.NewCookie(c.owner, 0, 0), c.tunnel
		if v := b.packet(in); v != c.want {
			t.Errorf("%s: %v, want %v", c.name, v, c.want)
		}
	}
}
