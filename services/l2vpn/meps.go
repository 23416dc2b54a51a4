package l2vpn

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/services/l2vpn/cfm"
)

// mepTick is the time between two looks at what maintenance end points send, and mepParts which part of
// l2vpn.probe_rate is theirs.
const (
	mepTick  = 100 * time.Millisecond
	mepParts = 5
)

// A mep is a maintenance end point of an end, which faces the customer.
type mep struct {
	at   end
	text string // as parseMEP reads it
	cfm.Config
}

// parseMEP reads END=MEPID,level=N,ma=NAME, with ,md=NAME and ,interval=TIME behind; meg=NAME may be in place of ma.
func parseMEP(text string) (m mep, err error) {
	wrong := func(format string, args ...any) (mep, error) {
		return mep{}, fmt.Errorf("mep %.160q: "+format, append([]any{text}, args...)...)
	}
	at, rest, is := strings.Cut(text, "=")
	if !is {
		return wrong("want END=MEPID,level=N,ma=NAME")
	}
	if m.at, err = parseEnd(at); err != nil {
		return wrong("%w", err)
	}
	parts := strings.Split(rest, ",")
	id, err := strconv.ParseUint(parts[0], 10, 16)
	if err != nil || id < 1 || id > 8191 {
		return wrong("identifier %.20q: want 1 to 8191", parts[0])
	}
	m.ID, m.Interval = uint16(id), time.Second
	domain, name, group, level := "", "", "", uint64(8)
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "level":
			level, err = strconv.ParseUint(value, 10, 3)
			if err != nil {
				return wrong("level %.20q: want 0 to 7", value)
			}
		case "ma":
			name = value
		case "md":
			domain = value
		case "meg":
			group = value
		case "interval":
			if m.Interval, err = time.ParseDuration(value); err != nil || !cfm.IntervalOK(m.Interval) {
				return wrong("interval %.20q: want 1s, 10s or 1m", value)
			}
		default:
			return wrong("%.20q: want level, ma, md, meg or interval", key)
		}
	}
	if level > 7 {
		return wrong("want a level, 0 to 7")
	}
	m.Level = uint8(level)
	switch {
	case group != "" && domain+name != "":
		return wrong("want ma, or meg, which is a name of its own")
	case group != "":
		m.MAID, err = cfm.NewMEG(group)
		m.text = fmt.Sprintf("%v=%d,level=%d,meg=%s", m.at, id, level, group)
	default:
		m.MAID, err = cfm.NewMAID(domain, name)
		m.text = fmt.Sprintf("%v=%d,level=%d,ma=%s", m.at, id, level, name)
	}
	if err != nil {
		return wrong("%w", err)
	}
	if domain != "" {
		m.text += ",md=" + domain
	}
	switch m.Interval {
	case time.Second:
	case time.Minute:
		m.text += ",interval=1m"
	default:
		m.text += ",interval=" + m.Interval.String()
	}
	return m, nil
}

// readMEPs reads the maintenance end points of a circuit.
func readMEPs(c *circuit) error {
	for i, text := range c.Meps {
		m, err := parseMEP(text)
		switch {
		case err != nil:
			return err
		case !slices.Contains(c.ends, m.at):
			return fmt.Errorf("mep: %v is no end of it", m.at)
		case c.mepAt(m.at) != nil:
			return fmt.Errorf("mep: end %v has two: want one", m.at)
		}
		c.meps, c.Meps[i] = append(c.meps, m), m.text
	}
	return nil
}

// mepAt returns the maintenance end point of an end, nil if it has none.
func (c *circuit) mepAt(e end) *mep {
	for i := range c.meps {
		if c.meps[i].at == e {
			m := c.meps[i]
			m.MAC = flow.MAC{0x0a, 'C', byte(c.Id >> 16), byte(c.Id >> 8), byte(c.Id), byte(slices.Index(c.ends, e))}
			return &m
		}
	}
	return nil
}

// mepFrames returns how many frames the maintenance end points of a circuit send in a minute, at most: to one
// other each.
func mepFrames(c *circuit) (n int) {
	for _, m := range c.meps {
		n += 2 * int(time.Minute/m.Interval)
	}
	return n
}

// crowdedMEPs returns an error if a circuit has more maintenance end points than there may be beside those of
// others. It is called with mu held.
func crowdedMEPs(b *store, c *circuit) error {
	n := mepFrames(c)
	for name := range b.maintained {
		if name != c.Name {
			n += mepFrames(b.status[name].circuit)
		}
	}
	if most := b.cfg.ProbeRate / mepParts * 60; len(c.meps) > 0 && n > most {
		return api.Errorf(codes.ResourceExhausted, "circuit %s: mep: all maintenance end points would send %d frames a second, and may send %d: want longer intervals, or raise l2vpn.probe_rate",
			c.Name, n/60, most/60)
	}
	return nil
}

// oam adds the entries that give the controller the frames of an end's maintenance end point, from a priority on.
func (s *set) oam(in inlet, table uint8, priority uint16, m flow.Match) {
	if in.mep == nil {
		return
	}
	for _, to := range []flow.MAC{cfm.Group(in.mep.Level), in.mep.MAC} {
		s.enter(0, flow.Entry{Table: table, Priority: priority, Match: m.WithEthType(cfm.EthType).WithEthDst(to), Apply: []flow.Action{flow.Output(flow.PortController)}})
	}
}

// maintain gives a circuit its maintenance end points: those that it had stay. It is called with mu held.
func maintain(b *store, s *status) {
	had := s.meps
	s.meps = nil
	for _, x := range s.circuit.meps {
		m := s.circuit.mepAt(x.at)
		if s.meps == nil {
			s.meps = map[end]*cfm.MEP{}
		}
		if old := had[x.at]; old != nil && old.Config() == m.Config {
			s.meps[x.at] = old
		} else {
			s.meps[x.at] = cfm.NewMEP(m.Config)
		}
	}
	if delete(b.maintained, s.circuit.Name); len(s.meps) > 0 {
		b.maintained[s.circuit.Name] = true
	}
}

// A maintenance has the maintenance end points send, and hears what they are sent.
type maintenance struct {
	b       *store
	control func(flow.DPID) int64 // how long a frame takes to a switch and back, ns
}

// due appends the frames that are to be sent now.
func (o *maintenance) due(d *flow.Decision) {
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.maintained {
		s := b.status[name]
		for e, m := range s.meps {
			if s.phase != inForce || b.net.unusable(e.at) != "" {
				continue
			}
			for _, frame := range m.Due(b.now()) {
				e.emit(d, frame)
			}
		}
	}
}

// emit appends the packet-out by which a frame of the controller's own leaves at an end.
func (e end) emit(d *flow.Decision, frame []byte) {
	d.PacketOut(e.at.Switch, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Data: e.tagged(frame), Actions: d.Actions(flow.Output(e.at.Port))})
}

// tagged returns a frame with the tags that frames have at an end.
func (e end) tagged(frame []byte) []byte {
	acts := leave(0, e)
	if e.list != "" {
		acts = []flow.Action{flow.PushVLAN(flow.EthTypeVLAN), flow.SetVLAN(e.list.ranges()[0].first)}
	}
	for _, act := range acts {
		if act.Kind != flow.ActionOutput {
			frame, _ = packet.Apply(frame, act)
		}
	}
	return frame
}

// takes takes a frame for a maintenance end point, and answers it; it returns false for other packets.
func (o *maintenance) takes(in *flow.PacketIn, d *flow.Decision) bool {
	tags, kind, body := frameTags(in.Data)
	if kind != cfm.EthType || in.Cookie.Owner() != flow.OwnerCircuits {
		return false
	}
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	at := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	for e, names := range b.taken[at.Switch][at.Port] {
		for name := range names {
			m := b.status[name].meps[e]
			if m == nil || !e.carries(tags, b.taken.vlans(at)) {
				continue
			}
			if answer := m.Receive(b.now(), in.Key.EthSrc, in.Key.EthDst, body, o.control(in.Switch)); answer != nil {
				e.emit(d, answer)
			}
		}
	}
	return true
}

// judge has the circuits assessed whose maintenance end points hear something else than before.
func (o *maintenance) judge() {
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.maintained {
		s := b.status[name]
		if why := s.unheard(); why != s.defect {
			s.defect = why
			b.assess(s)
		}
	}
}

// unheard returns what a maintenance end point of a circuit lacks; empty if none lacks anything.
func (s *status) unheard() string {
	for _, e := range s.circuit.ends {
		m := s.meps[e]
		if m == nil {
			continue
		}
		if m.Fault() != "" {
			return fmt.Sprintf("maintenance at end %v: %s", e, m.Fault())
		}
		for _, r := range m.Remotes() {
			switch r.State {
			case cfm.Lost:
				return fmt.Sprintf("maintenance at end %v: end point %d is not heard any more", e, r.ID)
			case cfm.RDI:
				return fmt.Sprintf("maintenance at end %v: end point %d does not hear all others", e, r.ID)
			}
		}
	}
	return ""
}

// continuityAt returns what the maintenance end point of an end hears; nil if it has none.
func (s *status) continuityAt(e end) *api.CircuitContinuity {
	m := s.meps[e]
	if m == nil {
		return nil
	}
	said := &api.CircuitContinuity{Mep: uint32(m.Config().ID), Level: uint32(m.Config().Level), Fault: m.Fault()}
	for _, r := range m.Remotes() {
		one := &api.CircuitRemoteMep{Mep: uint32(r.ID), Mac: r.MAC.String(), State: r.State, Since: r.Since.UTC().Format(time.RFC3339)}
		if x := r.Measure(); x.Sent > 0 {
			one.DelayUs = &api.CircuitDelay{P50: x.P50, P99: x.P99, Max: x.Max, Jitter: x.Jitter}
			one.LossRatio = float64(x.Lost) / float64(x.Sent)
		}
		said.Remotes = append(said.Remotes, one)
	}
	return said
}

// run has maintenance end points send, and judges what they hear, until ctx ends.
func (o *maintenance) run(ctx context.Context, send func(context.Context, *flow.Decision) error) {
	probe(ctx, mepTick, o.judge, o.due, send)
}
