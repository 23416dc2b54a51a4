package l2vpn

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/services/l2vpn/cfm"
	"github.com/weft-sdn/weft/wefttest"
)

// TestMaintenance: the end point of an end and a customer's hear each other through the tags of the end, the
// circuit says what is lost, and the switches give the controller these frames and no others.
func TestMaintenance(t *testing.T) {
	for _, ends := range []string{"1:1 2:1", "1:1.10 2:1", "1:1.10.11 2:1", "1:1/10-12 2:1"} {
		for _, typ := range []string{vpws, vpls} {
			now := time.Unix(1e9, 0)
			b := newTestStoreAt(t, wefttest.NewStore(), defaults(), func() time.Time { return now })
			m := &api.Circuit{Name: "c", Type: typ, Ends: strings.Fields(ends)}
			m.Meps = []string{m.Ends[0] + "=1,level=4,ma=evc-7"}
			if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
				t.Fatal(err)
			}
			o := &maintenance{b: b, control: func(flow.DPID) int64 { return int64(time.Millisecond) }}
			c := b.status["c"].circuit
			id, err := cfm.NewMAID("", "evc-7")
			if err != nil {
				t.Fatal(err)
			}
			customer := cfm.NewMEP(cfm.Config{ID: 2, Level: 4, MAID: id, Interval: time.Second, MAC: flow.MAC{2, 0, 0, 0, 0, 2}})
			silent := false
			// carry gives the customer what leaves at the end, and the controller what it sends.
			var carry func(d *flow.Decision)
			send := func(frame []byte) {
				if silent {
					return
				}
				now = now.Add(time.Millisecond)
				in := wefttest.NewPacketIn(1, 1, c.ends[0].tagged(frame))
				in.Cookie = flow.NewCookie(flow.OwnerCircuits, 0, 0)
				d := &flow.Decision{}
				if !o.takes(in, d) {
					t.Fatal("a frame is not taken")
				}
				carry(d)
			}
			carry = func(d *flow.Decision) {
				for _, op := range d.Ops {
					out := d.Outs[op.Index]
					if op.Switch != 1 || flow.Port(out.Actions[0].Arg) != 1 {
						t.Fatalf("a frame leaves at switch %v by %v", op.Switch, out.Actions)
					}
					tags, _, body := frameTags(out.Data)
					if !c.ends[0].carries(tags, "") {
						t.Fatalf("a frame leaves with tags %v", tags)
					}
					now = now.Add(time.Millisecond)
					if back := customer.Receive(now, flow.MAC(out.Data[6:12]), flow.MAC(out.Data[:6]), body, 0); back != nil {
						send(back)
					}
				}
			}
			around := func(d time.Duration) {
				for end := now.Add(d); now.Before(end); now = now.Add(mepTick) {
					out := &flow.Decision{}
					o.due(out)
					carry(out)
					for _, frame := range customer.Due(now) {
						send(frame)
					}
					o.judge()
				}
			}
			around(8 * time.Second)
			got := b.get("c").Members[0].Continuity
			if r := got.GetRemotes(); len(r) != 1 || r[0].Mep != 2 || r[0].State != "up" || got.Fault != "" || r[0].DelayUs.GetP50() != 2000 || r[0].LossRatio != 0 {
				t.Errorf("%s %s: %v, want an end point 2 ms away, one of which the check before takes", typ, ends, got)
			}
			if r := customer.Remotes(); len(r) != 1 || r[0].ID != 1 || r[0].State != cfm.Up || r[0].Measure().Sent == 0 {
				t.Errorf("%s %s: the customer hears %v", typ, ends, r)
			}
			silent = true
			around(5 * time.Second)
			if why := b.status["c"].defect; !strings.Contains(why, "end point 2 is not heard any more") {
				t.Errorf("%s %s: %q", typ, ends, why)
			}
			if r := b.get("c").Members[0].Continuity.Remotes; r[0].State != "lost" {
				t.Errorf("%s %s: %v", typ, ends, r)
			}
		}
	}
}

// TestMaintenanceFrames: what goes to the end point comes to the controller; other levels, and what goes to others, to
// the far end.
func TestMaintenanceFrames(t *testing.T) {
	for _, ends := range []string{"1:1 2:1", "1:1.10 2:1", "1:1.10.11 2:1"} {
		m := &api.Circuit{Name: "c", Ends: strings.Fields(ends)}
		m.Meps = []string{m.Ends[0] + "=1,level=4,ma=a"}
		f := newPortsField(t, m)
		c := f.b.status["c"].circuit
		far := f.host(c.ends[1].at)
		for dst, passes := range map[flow.MAC]bool{cfm.Group(4): false, c.mepAt(c.ends[0]).MAC: false, cfm.Group(5): true, {2, 0, 0, 0, 0, 9}: true} {
			far.Received()
			frame := append(packet.AppendEthernet(nil, packet.Ether{Dst: dst, Src: flow.MAC{2, 0, 0, 0, 0, 1}}, cfm.EthType), 0x80, 1, 4, 0)
			f.host(c.ends[0].at).Send(c.ends[0].tagged(packet.Pad(frame)))
			if got := len(far.Received()) == 1; got != passes {
				t.Errorf("%s: a frame to %v comes to the far end: %v", ends, dst, got)
			}
		}
	}
}

// TestMaintenanceRefused: what is no end point is refused, and so are more than frames may be sent for.
func TestMaintenanceRefused(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	b.cfg.ProbeRate = 10
	set := func(name, mep string) error {
		return b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: name, Ends: []string{"1:" + name, "2:" + name}, Meps: strings.Fields(mep)}}})
	}
	for mep, want := range map[string]string{
		"1:1=1":                                       "want a level, 0 to 7",
		"1:1=1,level=8,ma=a":                          "want 0 to 7",
		"1:1=0,level=1,ma=a":                          "want 1 to 8191",
		"1:1=1,level=1":                               "want a name",
		"1:1=1,level=1,ma=a,mip=3":                    "want level, ma, md, meg or interval",
		"1:1=1,level=1,ma=a,meg=b":                    "want ma, or meg",
		"1:1=1,level=1,meg=12345678901234":            "at most 13 letters",
		"1:2=1,level=1,ma=a":                          "is no end of it",
		"1:1":                                         "want END=MEPID",
		"1:1=1,level=1,ma=a,interval=2s":              "want 1s, 10s or 1m",
		"1:1=1,level=1,ma=a 1:1=2,level=2,ma=b":       "has two: want one",
		"1:1=1,level=1,ma=" + strings.Repeat("x", 50): "at most 44 letters",
	} {
		if err := set("1", mep); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", mep, err, want)
		}
	}
	if err := set("1", "1:1=1,level=1,ma=a"); err != nil {
		t.Fatal(err)
	}
	if err := set("2", "1:2=1,level=1,ma=a"); api.KindOf(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "raise l2vpn.probe_rate") {
		t.Error(err)
	}
	if err := set("1", "1:1=1,level=1,ma=a,md=d,interval=10s"); err != nil || b.get("1").Meps[0] != "0000000000000001:1=1,level=1,ma=a,md=d,interval=10s" {
		t.Error(err, b.get("1").Meps)
	}
}
