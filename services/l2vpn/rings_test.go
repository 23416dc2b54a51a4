package l2vpn

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// ringField is circuits with customers that join ports.
type ringField struct {
	*rings
	t     *testing.T
	now   time.Time
	joins [][2]end
	sent  int
}

// around has a time pass in which probes go where customers pass them on.
func (f *ringField) around(d time.Duration) {
	f.t.Helper()
	for end := f.now.Add(d); f.now.Before(end); f.now = f.now.Add(ringTick) {
		d := &flow.Decision{}
		f.due(d)
		for _, op := range d.Ops {
			o := d.Outs[op.Index]
			f.sent++
			for _, j := range f.joins {
				for i, from := range j {
					to := j[1-i]
					if tags, body := ringTags(o.Data); from.at == (flow.Location{Switch: op.Switch, Port: flow.Port(o.Actions[0].Arg)}) && from.carries(tags, "") && len(body) >= ringLen {
						f.arrives(to, o.Data)
					}
				}
			}
		}
		f.judge()
	}
}

// arrives has a probe come in at an end, with its tags.
func (f *ringField) arrives(to end, probe []byte) {
	f.t.Helper()
	_, body := ringTags(probe)
	b := append(bytes.Clone(probe[:12]), packet.AppendEthernet(nil, packet.Ether{}, ringType)[12:]...)
	b = append(b, body...)
	for _, act := range leave(0, to) {
		if act.Kind != flow.ActionOutput {
			b, _ = packet.Apply(b, act)
		}
	}
	if !f.takes(wefttest.NewPacketIn(to.at.Switch, to.at.Port, b)) {
		f.t.Error("a probe is not taken")
	}
}

func newRingField(t *testing.T, circuits ...*api.Circuit) *ringField {
	t.Helper()
	f := &ringField{t: t, now: time.Unix(1e9, 0)}
	b := newTestStoreAt(t, wefttest.NewStore(), defaults(), func() time.Time { return f.now })
	f.rings = newRings(b)
	if err := b.try(&api.SetCircuitsRequest{Circuits: circuits}); err != nil {
		t.Fatal(err)
	}
	for _, c := range circuits {
		b.over(c.Name)
	}
	b.give()
	return f
}

func (f *ringField) join(a, z string) {
	x, err := parseEnd(a)
	y, err2 := parseEnd(z)
	if err != nil || err2 != nil {
		f.t.Fatal(err, err2)
	}
	f.joins = append(f.joins, [2]end{x, y})
}

// TestRings: circuits whose ends a customer joins to a loop are degraded and say with what;
// those that are joined at one side only are not, nor are others, and all are up again later.
func TestRings(t *testing.T) {
	for _, c := range []struct {
		name     string
		circuits string // NAME END END…, …
		joins    string // END-END …
		in       map[string]string
	}{
		{"two circuits", "red 1:1 2:1, blue 1:2.100 2:2.200, other 1:3 2:3", "1:1-1:2.100 2:1-2:2.200", map[string]string{"red": "circuit blue", "blue": "circuit red"}},
		{"one side", "red 1:1 2:1, blue 1:2 2:2", "1:1-1:2", nil},
		{"two tags", "red 1:1.5.6 2:1, blue 1:2 2:2", "1:1.5.6-1:2 2:1-2:2", map[string]string{"red": "circuit blue", "blue": "circuit red"}},
		{"another tag", "red 1:1.5 2:1, blue 1:2.6 2:2", "1:1.7-1:2.6 2:1-2:2", nil},
		{"its own ends", "red 1:1 2:1", "1:1-2:1", map[string]string{"red": "circuit red"}},
		{"three circuits", "red 1:1 2:1, green 2:2 3:2, blue 3:1 1:2, other 1:3 3:3", "2:1-2:2 3:2-3:1 1:2-1:1",
			map[string]string{"red": "circuit blue", "green": "circuit red", "blue": "circuit green"}},
		{"a chain", "red 1:1 2:1, green 2:2 3:2, blue 3:1 4:1", "2:1-2:2 3:2-3:1", nil},
		{"a vpls", "lan 1:1 1:3 1:4, red 1:2 3:2", "1:1-1:2 1:3-3:2", map[string]string{"lan": "circuit red", "red": "circuit lan"}},
		{"ip", "red 1:1 2:1, ip 1:2 2:2", "1:1-1:2 2:1-2:2", map[string]string{"red": "circuit ip", "ip": "circuit red"}},
	} {
		var list []*api.Circuit
		for _, text := range strings.Split(c.circuits, ", ") {
			words := strings.Fields(text)
			m := &api.Circuit{Name: words[0], Ends: words[1:], Type: map[bool]string{true: vpls}[words[0] == "lan"], Payload: map[bool]string{true: ip}[words[0] == "ip"], Oam: true}
			list = append(list, m)
		}
		f := newRingField(t, list...)
		for _, text := range strings.Fields(c.joins) {
			a, z, _ := strings.Cut(text, "-")
			f.join(a, z)
		}
		f.around(8 * time.Second)
		for _, m := range list {
			got, want := f.b.get(m.Name), c.in[m.Name]
			in := strings.Contains(got.Reason, "a loop: the customer joins")
			if in != (want != "") || in && (got.State != "degraded" || !strings.Contains(got.Reason, want)) {
				t.Errorf("%s: %s is %s (%s); want %q", c.name, m.Name, got.State, got.Reason, want)
			}
		}
		f.joins = nil
		f.around(12 * time.Second)
		for _, m := range list {
			if got := f.b.get(m.Name); strings.Contains(got.Reason, "a loop") {
				t.Errorf("%s: %s is still %s (%s)", c.name, m.Name, got.State, got.Reason)
			}
		}
		if rate := float64(f.sent) / 20; rate < 1 || rate > float64(f.b.cfg.ProbeRate/ringParts) {
			t.Errorf("%s: %g probes a second", c.name, rate)
		}
	}
}

// TestRingProbes: what a customer makes, keeps or changes is no probe; no end is probed whose
// port is away, whose circuit does not ask for it, or while the configuration says so. Nor is anything
// kept from a customer there.
func TestRingProbes(t *testing.T) {
	f := newRingField(t, &api.Circuit{Name: "red", Ends: []string{"1:1", "2:1"}, Oam: true}, &api.Circuit{Name: "blue", Ends: []string{"1:2", "2:2"}, Oam: true},
		&api.Circuit{Name: "still", Ends: []string{"1:3", "2:3"}})
	c := f.b.status["red"].circuit
	to := f.b.status["blue"].circuit.ends[0]
	good := f.frame(c, 0, f.now)
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	for what, probe := range map[string][]byte{"changed": bad, "short": good[:len(good)-1], "old": f.frame(c, 0, f.now.Add(-ringLeast-time.Second)), "another's": newRings(f.b).frame(c, 0, f.now)} {
		if f.arrives(to, probe); len(f.heard) > 0 {
			t.Errorf("%s: %v", what, f.heard)
		}
	}
	if f.arrives(c.ends[0], good); len(f.heard) > 0 {
		t.Error("an end is joined with itself")
	}
	if f.arrives(to, good); len(f.heard) != 1 {
		t.Error("a probe is not heard")
	}
	f.b.feed(&api.PortChanged{Port: &api.Port{Dpid: flow.DPID(1).String(), Port: 1}})
	d := &flow.Decision{}
	if f.due(d); len(d.Outs) != 3 {
		t.Errorf("%d ends are probed, want those three whose ports are up", len(d.Outs))
	}
	trapped := map[string]bool{}
	for _, m := range wholeOf(f.b, 1).Flows {
		if m.Priority == flow.PriorityCircuitRing {
			trapped[m.Match["in_port"]] = true
		}
	}
	if fmt.Sprint(trapped) != "map[1:true 2:true]" {
		t.Errorf("probes are given to the controller at ports %v of switch 1, want 1 and 2", trapped)
	}
	f.b.cfg.RingInterval = 0
	f.now = f.now.Add(time.Minute)
	d = &flow.Decision{}
	if f.due(d); len(d.Outs) > 0 {
		t.Error("ends are probed")
	}
}
