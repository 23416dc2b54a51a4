package cfm

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// wire is two end points with a way between them that takes a time each way.
type wire struct {
	t     *testing.T
	now   time.Time
	ends  [2]*MEP
	takes time.Duration
	cut   [2]bool // what an end sends is lost
}

func newWire(t *testing.T, change func(a, z *Config)) *wire {
	t.Helper()
	id, err := NewMAID("", "evc-7")
	if err != nil {
		t.Fatal(err)
	}
	a := Config{ID: 1, Level: 4, MAID: id, Interval: time.Second, MAC: flow.MAC{2, 0, 0, 0, 0, 1}}
	z := a
	z.ID, z.MAC = 2, flow.MAC{2, 0, 0, 0, 0, 2}
	if change != nil {
		change(&a, &z)
	}
	return &wire{t: t, now: time.Unix(1e9, 0), ends: [2]*MEP{NewMEP(a), NewMEP(z)}}
}

// give has an end receive a frame, and the other what that answers.
func (w *wire) give(to int, frame []byte, at time.Time) {
	if w.cut[1-to] {
		return
	}
	dst, src := flow.MAC(frame[:6]), flow.MAC(frame[6:12])
	if back := w.ends[to].Receive(at.Add(w.takes), src, dst, frame[14:], 0); back != nil {
		w.give(1-to, back, at.Add(w.takes))
	}
}

func (w *wire) run(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(100 * time.Millisecond) {
		for i, m := range w.ends {
			for _, frame := range m.Due(w.now) {
				w.give(1-i, frame, w.now)
			}
		}
	}
}

func (w *wire) state(of int) string {
	list := w.ends[of].Remotes()
	if len(list) == 0 {
		return "none"
	}
	return list[0].State
}

// TestContinuity: end points hear each other, notice a loss after three and a half intervals, and tell the other,
// also where one direction only is cut.
func TestContinuity(t *testing.T) {
	w := newWire(t, nil)
	w.takes = 3 * time.Millisecond
	w.run(10 * time.Second)
	for i := range w.ends {
		if w.state(i) != Up || w.ends[i].Fault() != "" {
			t.Errorf("%d: %s, %s", i, w.state(i), w.ends[i].Fault())
		}
		if m := w.ends[i].Remotes()[0].Measure(); m.Sent < 5 || m.Lost != 0 || m.P50 != 6000 || m.Max != 6000 || m.Jitter != 0 {
			t.Errorf("%d: %+v, want 6 ms both ways", i, m)
		}
	}
	w.cut[0] = true
	w.run(2500 * time.Millisecond)
	if w.state(1) != Up {
		t.Errorf("after 2.5 s: %s", w.state(1))
	}
	w.run(5 * time.Second)
	if w.state(1) != Lost || w.state(0) != RDI {
		t.Errorf("cut one way: %s, and the other says %s", w.state(1), w.state(0))
	}
	if m := w.ends[0].Remotes()[0].Measure(); m.Lost < 3 {
		t.Errorf("delay messages into the cut: %+v", m)
	}
	w.cut[0] = false
	w.run(3 * time.Second)
	if w.state(0) != Up || w.state(1) != Up {
		t.Errorf("whole again: %s, %s", w.state(0), w.state(1))
	}
}

// TestDefects: what is connected wrongly, or configured otherwise, is said, and is no remote end point.
func TestDefects(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a, z *Config)
		want   string
	}{
		"association": {func(_, z *Config) { z.MAID, _ = NewMAID("carrier", "evc-8") }, `belongs to association "carrier/evc-8"`},
		"identifier":  {func(_, z *Config) { z.ID = 1 }, "is end point 1, too"},
		"group":       {func(_, z *Config) { z.MAID, _ = NewMEG("WEFT01evc8") }, `belongs to association "WEFT01evc8"`},
		"interval":    {func(_, z *Config) { z.Interval = 10 * time.Second }, "end point 2 sends at another interval"},
	} {
		w := newWire(t, c.change)
		w.run(3 * time.Second)
		if got := w.ends[0].Fault(); !strings.Contains(got, c.want) || w.state(0) != "none" {
			t.Errorf("%s: %q, %s; want %q", name, got, w.state(0), c.want)
		}
		w.cut[1] = true
		w.run(5 * time.Second)
		if got := w.ends[0].Fault(); got != "" {
			t.Errorf("%s: after it has gone: %q", name, got)
		}
	}
	w := newWire(t, func(_, z *Config) { z.Level = 5 })
	w.run(3 * time.Second)
	if w.state(0) != "none" || w.ends[0].Fault() != "" {
		t.Error("a frame of another level is heard")
	}
}

// TestLoopback: a loopback message comes back as it was, from the address that it went to.
func TestLoopback(t *testing.T) {
	m := newWire(t, nil).ends[0]
	lbm := append(newPDU(4, codeLBM, 0, lbmLen)[:headerLen+lbmLen], 3, 0, 2, 0xab, 0xcd, 0) // with a data TLV
	lbm[headerLen+3] = 9
	from := flow.MAC{2, 0, 0, 0, 0, 7}
	got := m.Receive(time.Unix(1, 0), from, m.cfg.MAC, lbm, 0)
	want := bytes.Clone(lbm)
	want[1] = codeLBR
	if len(got) < 14 || !bytes.Equal(got[14:], want) || flow.MAC(got[:6]) != from || flow.MAC(got[6:12]) != m.cfg.MAC {
		t.Errorf("%x", got)
	}
	if pdu(got[14:]).transaction() != 9 {
		t.Error("its number is another")
	}
	if m.Receive(time.Unix(1, 0), from, flow.MAC{2, 0, 0, 0, 0, 8}, lbm, 0) != nil {
		t.Error("a message for another is answered")
	}
}

// TestFrames: frames are as 802.1ag and Y.1731 have them, octet for octet.
func TestFrames(t *testing.T) {
	w := newWire(t, nil)
	m := w.ends[0]
	frames := m.Due(w.now)
	want := "0180c2000034" + "020000000001" + "8902" + "80010446" + "00000001" + "0001" + "0102056576632d37" + strings.Repeat("00", 40) + strings.Repeat("00", 16) + "00"
	if len(frames) != 1 || hex.EncodeToString(frames[0]) != want {
		t.Errorf("%x, want %s", frames, want)
	}
	w.give(0, w.ends[1].check(), w.now)
	w.now = w.now.Add(time.Second)
	frames = m.Due(w.now)
	want = "020000000002" + "020000000001" + "8902" + "802f0020" + "3b9aca01" + "00000000" + strings.Repeat("00", 24) + "00"
	if len(frames) != 2 || hex.EncodeToString(frames[1]) != want {
		t.Errorf("%x, want %s", frames, want)
	}
}

// TestOfOpenVSwitch: a continuity check that Open vSwitch 3.1 has sent (cfm_mpid=7) is heard.
func TestOfOpenVSwitch(t *testing.T) {
	id, err := NewMAID("ovs", "ovs")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMEP(Config{ID: 1, MAID: id, Interval: time.Second, MAC: flow.MAC{2, 0, 0, 0, 0, 1}})
	body, err := hex.DecodeString("00010446" + "0000001b" + "0007" + "04036f76730203" + "6f7673" + strings.Repeat("00", 38) + strings.Repeat("00", 16) + "00")
	if err != nil {
		t.Fatal(err)
	}
	m.Receive(time.Unix(1e9, 0), flow.MAC{0x7e, 0x7f, 0xe7, 0x30, 0x92, 0x55}, Group(0), body, 0)
	if r := m.Remotes(); len(r) != 1 || r[0].ID != 7 || r[0].State != Up {
		t.Errorf("%+v, %s", r, m.Fault())
	}
}

// TestMany: no more end points are followed than there may be, and those that are stay.
func TestMany(t *testing.T) {
	w := newWire(t, nil)
	for id := range uint16(100) {
		c := w.ends[1].cfg
		c.ID, c.MAC[5] = id+10, byte(id)+10
		w.give(0, NewMEP(c).check(), w.now)
	}
	if n := len(w.ends[0].Remotes()); n != Remotes {
		t.Errorf("%d are followed, want %d", n, Remotes)
	}
}

func FuzzReceive(f *testing.F) {
	id, _ := NewMAID("d", "a")
	m := NewMEP(Config{ID: 1, Level: 4, MAID: id, Interval: time.Second, MAC: flow.MAC{2, 0, 0, 0, 0, 1}})
	f.Add(m.check()[14:])
	f.Add([]byte(newPDU(4, codeDMR, 0, dmmLen)))
	f.Add([]byte(newPDU(4, codeLBM, 0, lbmLen)))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, dst := range []flow.MAC{m.cfg.MAC, Group(4)} {
			back := m.Receive(time.Unix(1e9, 0), flow.MAC{2, 0, 0, 0, 0, 2}, dst, bytes.Clone(body), 0)
			if back != nil && len(back) != len(body)+14 {
				t.Errorf("%x is answered by %x", body, back)
			}
		}
		m.Due(time.Unix(1e9, 0))
	})
}
