package oftest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// TestOpenVSwitchKeepsTheSameEntries has the fake and Open vSwitch take the
// same random sequences of flow-mods, of both versions, whose matches are few
// and cover each other. They refuse the same ones, keep the same entries, and
// say the same of those that they remove.
//
// They are known to differ in one thing: to Open vSwitch an entry is no overlap
// of one that it would replace; by the letter of §6.4 it is. No flow-mod of
// the test asks for that.
func TestOpenVSwitchKeepsTheSameEntries(t *testing.T) {
	for _, v := range []openflow.Version{openflow.V13, openflow.V10} {
		t.Run(v.String(), func(t *testing.T) {
			const rounds, mods = 60, 40
			o := startOVS(t, v)
			d := &duel{t: t, o: o, s: New(Config{DPID: 0xaa, Local: true, Now: time.Now()})}
			d.c = connect(t, d.s, v)
			for round := range rounds {
				c := newChance(uint64(round))
				d.rules, d.gone, d.theirs = nil, nil, nil
				d.mod(c.everything())
				matches := []flow.Match{{}}
				for range 6 {
					matches = append(matches, c.plain(v))
				}
				for range mods {
					m := c.mod(v, matches)
					if d.s.tables[m.Entry.Table%250].find(&m.Entry.Match, m.Entry.Priority) != nil || c.exact(v, &m) {
						m.Entry.Flags &^= flow.FlagOverlap
					}
					d.mod(m)
				}
				d.removed()
				d.flows()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// everything deletes all entries.
func (c chance) everything() flow.Mod {
	m := flow.Mod{Command: flow.Delete, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
	m.Entry.Table = flow.TableAll
	return m
}

// exact reports whether OpenFlow 1.0 gives a match the highest priority.
func (c chance) exact(v openflow.Version, m *flow.Mod) bool {
	return v == openflow.V10 && fields(&m.Entry.Match) > 9
}

// plain returns a match of few fields, so that matches often cover each other.
func (c chance) plain(v openflow.Version) flow.Match {
	var m flow.Match
	if c.in(2) {
		m = m.WithInPort(c.port())
	}
	if c.in(2) {
		m = m.WithEthDst(c.mac())
	}
	if c.in(2) {
		m = m.WithEthType(flow.EthTypeIPv4)
		if c.in(2) {
			m.PutMasked(flow.FieldIPv4Dst, c.value(flow.FieldIPv4Dst), pick(c, [16]byte{255, 255, 255}, [16]byte{255, 255, 255, 255}, [16]byte{255}))
		}
	}
	if v != openflow.V10 && c.in(4) {
		m.PutMasked(flow.FieldEthSrc, c.value(flow.FieldEthSrc), c.mask(flow.FieldEthSrc))
	}
	return m
}

// mod returns a flow-mod with one of the matches.
func (c chance) mod(v openflow.Version, matches []flow.Match) flow.Mod {
	m := flow.Mod{BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
	e := &m.Entry
	e.Match, e.Priority, e.Cookie = pick(c, matches...), uint16(1+c.IntN(3)), flow.Cookie(c.IntN(4))
	m.Command = pick(c, flow.Add, flow.Add, flow.Add, flow.Modify, flow.ModifyStrict, flow.Delete, flow.DeleteStrict)
	e.Apply = []flow.Action{flow.Output(c.port())}
	if c.in(3) {
		e.Apply = append(e.Apply, flow.Output(c.port()))
	}
	e.IdleTimeout, e.HardTimeout = uint16(c.IntN(2)*1000), uint16(c.IntN(2)*2000)
	e.Flags = uint16(c.IntN(4))
	deletes := m.Command >= flow.Delete
	if deletes && c.in(3) {
		m.OutPort = c.port()
	}
	if v == openflow.V10 {
		if deletes {
			e.Table = flow.TableAll
		}
		return m
	}
	e.Table = uint8(c.IntN(2))
	e.Flags = uint16(c.IntN(32))
	if deletes && c.in(3) {
		e.Table = flow.TableAll
	}
	if m.Command != flow.Add && c.in(3) {
		m.CookieMask = pick(c, flow.Cookie(1), 2, ^flow.Cookie(0))
	}
	if c.in(4) {
		e.Write, e.HasWrite = []flow.Action{flow.Output(c.port())}, true
	}
	return m
}

// mod gives both a flow-mod and keeps what the fake says of the entries that
// are gone.
func (d *duel) mod(m flow.Mod) {
	d.t.Helper()
	msg := mustMod(d.c.v, d.c.next(), m)
	var answers [][]byte
	for _, a := range d.s.Message(d.c.id, msg).Messages {
		if h, _ := openflow.ParseHeader(a.Data); h.Type == openflow.TypeFlowRemoved {
			d.gone = append(d.gone, removedText(d.t, d.c.v, a.Data))
		} else {
			answers = append(answers, a.Data)
		}
	}
	us, them := errorOf(d.c.v, answers), errorOf(d.c.v, d.o.exchange(d.c.v, msg))
	if us != them {
		d.t.Errorf("%s\nafter\n  %s\nthe fake says %q, Open vSwitch %q", describe(d.c.v, msg), strings.Join(d.rules, "\n  "), us, them)
	}
	d.rules = append(d.rules, describe(d.c.v, msg))
}

// removed compares what both have said of entries that are gone; Open vSwitch
// may take its time.
func (d *duel) removed() {
	d.t.Helper()
	slices.Sort(d.gone)
	for range 500 {
		d.o.exchange(d.c.v, nil)
		for _, a := range d.o.async {
			d.theirs = append(d.theirs, removedText(d.t, d.c.v, a))
		}
		d.o.async = nil
		slices.Sort(d.theirs)
		if slices.Equal(d.gone, d.theirs) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	d.t.Errorf("after\n  %s\nthe fake says\n  %s\nOpen vSwitch\n  %s", strings.Join(d.rules, "\n  "), strings.Join(d.gone, "\n  "), strings.Join(d.theirs, "\n  "))
}

// removedText returns what a flow-removed says, but for the duration.
func removedText(t *testing.T, v openflow.Version, msg []byte) string {
	var r openflow.FlowRemoved
	if err := v.DecodeFlowRemoved(msg, &r); err != nil {
		t.Errorf("%v: %x", err, msg)
	}
	return fmt.Sprintf("removed: reason %d table %d priority %d cookie %#x timeouts %d %d match [%v]",
		r.Reason, r.Table, r.Priority, uint64(r.Cookie), r.IdleTimeout, r.HardTimeout, r.Match)
}
