package l2vpn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// assess sets the state of a circuit. It is called with mu held.
func (b *store) assess(s *status) {
	if s.lan != nil {
		b.step(s)
	}
	if b.tunnels.moved(s.circuit, &s.confirmations) {
		b.kick()
	}
	state, reason := b.find(s)
	if s.circuit.MinMtu > 0 && (state == "up" || state == "degraded") {
		if why := tooSmall(s.circuit, b.net.mtu(s.circuit, b.tunnels.of(s.circuit))); why != "" {
			state, reason = "down", why
		}
	}
	if s.state == state && s.reason == reason || s.recalled && s.phase == inForce && s.state != "scheduled" && state != "up" && s.awaited(&b.net, &b.tunnels) != "" {
		return
	}
	s.recalled = false
	s.served = s.served || state == "up" || state == "degraded"
	if s.state != state {
		s.since = b.now()
	}
	s.state, s.reason = state, reason
	b.version++
	s.note(&api.CircuitState{}, b.now(), b.cfg.History)
	b.changes.set(s.message(b.now(), &b.net, &b.tunnels), false)
	b.news()
}

// note enters into a circuit's history, of at most so many states, what has happened.
func (s *status) note(h *api.CircuitState, now time.Time, most int) {
	h.State, h.Reason, h.Since = s.state, s.reason, now.UTC().Format(time.RFC3339Nano)
	s.history = append([]*api.CircuitState{h}, s.history...)
	s.history = s.history[:min(len(s.history), most)]
	s.record = ""
}

// log enters into a circuit's history what was changed of it, and by whom; nothing if nothing was. It
// is called with mu held.
func (s *status) log(b *store, changed, by string) {
	if changed != "" {
		b.version++
		s.note(&api.CircuitState{Changed: changed, By: by}, b.now(), b.cfg.History)
	}
}

// awaited returns what has yet to be said of a circuit since a restart, until which its
// state is that of the earlier run; empty if all has been.
func (s *status) awaited(net *network, tunnels *tunnelTable) string {
	if !tunnels.told {
		return "it is not known yet which tunnels there are"
	}
	for _, sw := range s.circuit.switches() {
		switch info := net.Info(sw); {
		case info == nil && !net.returned:
			return fmt.Sprintf("switch %v has not connected yet", sw)
		case info.GetConnected() && !s.confirmed(sw) && s.refused[sw] == "":
			return fmt.Sprintf("switch %v has not said yet whether it has it", sw)
		}
	}
	return ""
}

// remember takes over the states that a circuit has had in an earlier run.
func (s *status) remember(list []*api.CircuitState) {
	if len(list) == 0 {
		return
	}
	s.history, s.state, s.reason, s.recalled = list, list[0].State, list[0].Reason, true
	s.served = slices.ContainsFunc(list, func(h *api.CircuitState) bool { return h.State == "up" || h.State == "degraded" })
	for _, h := range list {
		if h.State != s.state {
			break
		}
		if at, err := time.Parse(time.RFC3339Nano, h.Since); err == nil {
			s.since = at
		}
	}
}

// assessAll assesses all circuits. It is called with mu held.
func (b *store) assessAll() {
	for _, s := range b.status {
		b.assess(s)
	}
}

// find returns the state that a circuit has now, and why it is not up. It is
// called with mu held.
func (b *store) find(s *status) (state, reason string) {
	c := s.circuit
	if state, reason := s.idle(); state != "" {
		return state, reason
	}
	if s.lan != nil {
		return s.findLAN(&b.net, &b.tunnels)
	}
	for _, e := range c.ends {
		if why := b.net.unusable(e.at); why != "" {
			return "down", why
		}
	}
	var degraded string
	for _, w := range b.tunnels.wishesOf(c) {
		t := b.tunnels.known[w.Name]
		switch {
		case !carries(t) && b.tunnels.standIn(c, w.From, w.To) != nil:
			degraded = fmt.Sprintf("frames go by the tunnel before until %s is up: %s", w.Name, cmp.Or(t.GetReason(), "it is being made"))
		case t == nil && w.err != nil:
			return "down", fmt.Sprintf("tunnel %s: %v", w.Name, w.err)
		case t == nil:
			return "requested", fmt.Sprintf("tunnel %s is being made", w.Name)
		case t.State == "down" && s.beginning(b.now()):
			b.unsettled[c.Name] = true
			return "requested", fmt.Sprintf("tunnel %s: %s", w.Name, t.Reason)
		case t.State == "down":
			return "down", fmt.Sprintf("tunnel %s: %s", w.Name, t.Reason)
		case t.State == "degraded":
			degraded = fmt.Sprintf("tunnel %s: %s", w.Name, t.Reason)
		case w.err != nil:
			degraded = fmt.Sprintf("tunnel %s: %v", w.Name, w.err)
		}
	}
	for _, sw := range c.switches() {
		if why := s.refused[sw]; why != "" {
			return "down", why
		}
		if !s.confirmed(sw) {
			if !s.served {
				return "requested", fmt.Sprintf("switch %v has not confirmed it yet", sw)
			}
			if s.changing(b.now()) {
				b.unsettled[c.Name] = true
				return s.state, s.reason
			}
			return "down", fmt.Sprintf("switch %v has not confirmed it yet", sw)
		}
	}
	switch m := s.measured; {
	case m != nil && m.down != "":
		return "down", m.down
	case s.looped:
		return "degraded", c.loopReason()
	case degraded != "":
		return "degraded", degraded
	case s.devices.crowded() != "":
		return "degraded", s.devices.crowded()
	case cmp.Or(s.ring, s.defect) != "":
		return "degraded", cmp.Or(s.ring, s.defect)
	case m != nil && m.bound != "":
		return "degraded", m.bound + s.detour
	}
	return "up", ""
}

// changing reports whether the switches may still be taking over a change of a circuit
// that works: what they had serves until then.
func (s *status) changing(now time.Time) bool {
	return (s.state == "up" || s.state == "degraded") && now.Sub(s.changed) < takeover
}

// beginning reports whether the paths of a circuit that has not been up yet may still be
// sought.
func (s *status) beginning(now time.Time) bool { return !s.served && now.Sub(s.changed) < takeover }

// takeover is how long switches may take to take over a change, before its circuit is down.
const takeover = 3 * time.Second

// settle assesses the circuits whose switches had not confirmed a change.
func (b *store) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.unsettled {
		delete(b.unsettled, name)
		if s := b.status[name]; s != nil {
			b.assess(s)
		}
	}
}

// answered follows what a switch has said of pieces that it was declared, or of all if
// none is named: it has those of all circuits but of those with entries or meters among what failed.
func (b *store) answered(sw flow.DPID, pieces []string, failed []*api.WantedFlow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	if pieces == nil {
		names = slices.Collect(maps.Keys(b.at[sw]))
	}
	for _, p := range pieces {
		if name, ok := strings.CutPrefix(p, circuitPiece); ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if s := b.status[name]; b.at[sw][name] && s.answer(sw, s.refusal(sw, failed, b.cfg, &b.tunnels)) {
			b.assess(s)
		}
	}
}

// refusal returns why a switch has not all entries of a circuit, if any of it is among what
// failed there; empty if none is.
func (s *status) refusal(sw flow.DPID, failed []*api.WantedFlow, cfg *Config, tunnels *tunnelTable) string {
	if len(failed) == 0 {
		return ""
	}
	var own set
	s.entries(&own, sw, cfg, tunnels)
	for _, e := range s.circuit.ends {
		if e.at.Switch == sw {
			guards(&own, e.at.Port, map[end]map[string]bool{e: nil})
		}
	}
	if f := own.lacks(failed); f != nil {
		return fmt.Sprintf("switch %v does not have all of its entries: %s", sw, f.Reason)
	}
	return ""
}

// message returns a circuit with its state.
func (s *status) message(now time.Time, net *network, tunnels *tunnelTable) *api.Circuit {
	c := s.circuit
	m := c.wantedAt(now)
	m.Id, m.TreeLabels, m.State, m.Reason, m.Since = c.Id, c.TreeLabels, s.state, s.reason, s.since.UTC().Format(time.RFC3339)
	m.Avoids, m.AvoidsUntil, m.Share = c.Avoids, c.AvoidsUntil, c.Share
	if why := s.awaited(net, tunnels); s.recalled && s.phase == inForce && why != "" {
		m.Reason = "as before a restart: " + why
	}
	if s.phase == waits {
		m.Reason += ", in " + c.from.Sub(now).Round(time.Second).String()
		m.Planned = c.Planned
	}
	sum := s.base
	for i, x := range c.Members {
		n := s.countedAt(i)
		sum = sum.plus(n)
		member := &api.CircuitMember{End: x.End, Label: x.Label, ArpLabel: x.ArpLabel, Ipv6Label: x.Ipv6Label, Meter: x.Meter, StormMeter: x.StormMeter,
			RxPackets: n[received].packets, RxBytes: n[received].bytes, TxPackets: n[sent].packets, TxBytes: n[sent].bytes, DroppedPackets: n[dropped].packets}
		if d := s.devices[c.ends[i]]; d != nil && d.there() {
			member.Mac = d.mac.String()
		}
		if s.lan != nil {
			member.Macs = uint32(s.lan.count[c.ends[i]])
		}
		member.YellowMeter, member.Excess = x.YellowMeter, s.excess(c.ends[i].at.Switch, net)
		member.Continuity = s.continuityAt(c.ends[i])
		member.Neighbour = s.neighbourAt(c.ends[i], now)
		m.Members = append(m.Members, member)
		m.Labels = append(m.Labels, x.Label)
	}
	m.RxPackets, m.RxBytes = sum[received].packets, sum[received].bytes
	m.TxPackets, m.TxBytes = sum[sent].packets, sum[sent].bytes
	m.DroppedPackets = sum[dropped].packets
	for i, w := range tunnels.wishesOf(c) {
		m.Tunnels = append(m.Tunnels, w.Name)
		if t := tunnels.known[w.Name]; i == 0 && t != nil && c.Type == vpws && t.State != "down" {
			m.Path, m.Standby = ways(t)
		}
	}
	m.Mtu = net.mtu(c, tunnels.of(c))
	if s.measured != nil {
		m.DelayUs, m.LossRatio = s.measured.delay, s.measured.loss
	}
	if len(m.Tunnels) == 0 && s.phase == inForce {
		m.Path = []string{c.ends[0].at.Switch.String()}
	}
	return m
}

// get returns a circuit with its state; nil if there is none.
func (b *store) get(name string) *api.Circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.status[name]; s != nil {
		return s.message(b.now(), &b.net, &b.tunnels)
	}
	return nil
}

// list returns the circuits of a type, or all, by name.
func (b *store) list(kind string) []*api.Circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*api.Circuit
	for _, name := range slices.Sorted(maps.Keys(b.status)) {
		if s := b.status[name]; kind == "" || s.circuit.Type == kind {
			list = append(list, s.message(b.now(), &b.net, &b.tunnels))
		}
	}
	return list
}

// history returns the states that a circuit has had.
func (b *store) historyOf(name string) (*api.CircuitHistory, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status[name]
	if s == nil {
		return nil, missing(name)
	}
	return &api.CircuitHistory{States: slices.Clone(s.history)}, nil
}

func missing(name string) error {
	return api.Errorf(codes.NotFound, "there is no circuit %.80s; weft l2vpn list shows those that are", name)
}

// records returns what is kept of circuits beside themselves, by name. It is
// called with mu held.
func (b *store) records() map[string]string {
	list := make(map[string]string, len(b.status))
	for name, s := range b.status {
		if s.record != "" {
			list[name] = s.record
			continue
		}
		text, err := protojson.Marshal(&api.CircuitHistory{States: s.history, RxPackets: s.base[received].packets, TxPackets: s.base[sent].packets,
			RxBytes: s.base[received].bytes, TxBytes: s.base[sent].bytes, DroppedPackets: s.base[dropped].packets, Devices: s.devices.messages()})
		if err == nil {
			s.record = string(text)
			list[name] = s.record
		}
	}
	return list
}

// recall takes over what an earlier run has kept of a circuit.
func (b *store) recall(name, text string) {
	m := &api.CircuitHistory{}
	if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(text), m) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.status[name]; s != nil {
		s.base = tally{received: {m.RxPackets, m.RxBytes}, sent: {m.TxPackets, m.TxBytes}, dropped: {packets: m.DroppedPackets}}
		s.devices.recall(s.circuit, m.Devices)
		s.remember(m.States)
		s.record = ""
		b.assess(s) // its time may have come, or be over
	}
}
