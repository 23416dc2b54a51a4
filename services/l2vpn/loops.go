package l2vpn

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// readLoops reads which end of a circuit is looped back, and until when.
func (c *circuit) readLoops() error {
	if len(c.Loops) == 0 && c.LoopsUntil == "" {
		return nil
	}
	switch {
	case c.Type != vpws || c.local():
		return fmt.Errorf("loops: only an end of a vpws between two switches can be looped back")
	case c.ip():
		return fmt.Errorf("loops: frames inside a circuit of payload ip have no Ethernet addresses to exchange; want payload ethernet")
	case len(c.Loops) != 1:
		return fmt.Errorf("loops: %d ends: one can be looped back at a time, as frames would run between two for ever", len(c.Loops))
	}
	e, err := parseEnd(c.Loops[0])
	if err != nil {
		return fmt.Errorf("loops: %w", err)
	}
	if !slices.Contains(c.ends, e) {
		return fmt.Errorf("loops: %v is no end of it", e)
	}
	c.Loops = []string{e.String()}
	if c.loopUntil, err = time.Parse(time.RFC3339, c.LoopsUntil); err != nil {
		return fmt.Errorf("loops_until %.40q: want a time as RFC 3339 has it, such as 2026-12-01T08:00:00Z", c.LoopsUntil)
	}
	c.loopUntil = c.loopUntil.UTC().Truncate(time.Second)
	c.LoopsUntil = c.loopUntil.Format(time.RFC3339)
	return nil
}

// loopsAt reports whether an end of a circuit is looped back at a time.
func (c *circuit) loopsAt(now time.Time) bool { return len(c.Loops) > 0 && now.Before(c.loopUntil) }

// wantedAt returns what a client has set of a circuit, without a loop whose time is over.
func (c *circuit) wantedAt(now time.Time) *api.Circuit {
	m := wanted(c.Circuit)
	if !c.loopsAt(now) {
		m.Loops, m.LoopsUntil = nil, ""
	}
	return m
}

// loopReason returns what is to be said of a circuit while an end is looped back.
func (c *circuit) loopReason() string {
	return fmt.Sprintf("end %s is looped back until %s", c.Loops[0], c.LoopsUntil)
}

// loop adds the entries of an end that is looped back: what its customer sends is dropped,
// and what the circuit brings goes back by a tunnel's group with the addresses exchanged, as
// it is inside the circuit. Broadcast and multicast meet no entry behind the label and are dropped.
func (s *set) loop(c *circuit, from, to int, group uint32) {
	e, label := c.ends[from], c.Members[from].Label
	s.ingress(inlet{id: c.Id, at: e})
	s.enter(c.Id, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityCircuitLabel,
		Match: flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(label).WithMPLSBOS(1),
		Apply: []flow.Action{flow.SetTunnelID(uint64(label)), flow.Decap(flow.PacketNext), flow.Decap(flow.PacketEthernet),
			flow.Resubmit{In: flow.PortIn, Table: flow.TableCircuits}.Action()}})
	m := flow.Match{}.WithTunnelID(uint64(label)).WithEthDstMasked(flow.MAC{}, toMany)
	back := append([]flow.Action{flow.ForgetInPort()}, flow.SwapMACs()...)
	switch has, wants := c.carried(to, from), c.carried(from, to); {
	case has > wants:
		m, back = m.WithAnyVLAN(), append(back, flow.PopVLAN())
	case has < wants:
		back = append(back, flow.PushVLAN(flow.EthTypeVLAN), flow.SetVLAN(1)) // which the end changes
	}
	s.enter(0, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityCircuitTags,
		Match: m, Apply: append(back, c.cover(to, group)...)})
}
