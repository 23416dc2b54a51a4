package l2vpn

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// error returns why a batch is refused: for the first circuits of which it is.
func (t *batch) error() error {
	var list []string
	kind := codes.OK
	refused := 0
	for _, err := range t.refused {
		if err == nil {
			continue
		}
		if kind == codes.OK {
			kind = api.KindOf(err)
		}
		if refused++; refused <= 5 {
			list = append(list, err.Error())
		}
	}
	if refused == 0 {
		return nil
	}
	text := strings.Join(list, "; ")
	if refused > len(list) {
		text += fmt.Sprintf("; and %d more", refused-len(list))
	}
	if len(t.circuits)+len(t.gone) > 1 {
		text += "; nothing is changed"
	}
	return &api.Error{Kind: kind, Text: text, Err: errors.New(text)}
}

// outcome returns what a batch changes, before it has.
func (t *batch) outcome(b *store) *api.SetCircuitsResponse {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &api.SetCircuitsResponse{}
	for i, c := range t.circuits {
		o := &api.CircuitOutcome{Name: t.req.Circuits[i].GetName()}
		r.Outcomes = append(r.Outcomes, o)
		if err := t.refused[i]; err != nil {
			o.Outcome, o.Error = "refused", err.Error()
			continue
		}
		old := b.circuits.Get(c.Name)
		switch {
		case old == nil:
			o.Outcome = "added"
			r.Added = append(r.Added, c.Name)
		case proto.Equal(old.wantedAt(b.now()), c.wantedAt(b.now())):
			o.Outcome = "unchanged"
			r.Unchanged = append(r.Unchanged, c.Name)
			continue
		default:
			o.Outcome = "changed"
			r.Changed = append(r.Changed, c.Name)
		}
		r.EntriesChanged += b.difference(old, c)
	}
	for _, name := range t.gone {
		r.Outcomes = append(r.Outcomes, &api.CircuitOutcome{Name: name, Outcome: "deleted"})
		r.Deleted = append(r.Deleted, name)
		r.EntriesChanged += b.difference(b.circuits.Get(name), nil)
	}
	return r
}

// difference returns how many entries differ between a circuit as it is and as
// it would be; nil is none. It is called with mu held.
func (b *store) difference(old, now *circuit) (n uint32) {
	have := map[string]int{}
	count := func(c *circuit, by int) {
		if c == nil || c.phaseAt(b.now()) != inForce {
			return
		}
		for _, sw := range c.switches() {
			for _, e := range entryTexts(c, sw, b.cfg, b.taken.besides(c.ends)) {
				have[e] += by
			}
		}
	}
	if now != nil {
		now = draft(now, old, b.cfg, &b.net)
	}
	count(old, -1)
	count(now, 1)
	for _, by := range have {
		if by != 0 {
			n++
		}
	}
	return n
}

// entryTexts returns the entries of a circuit at a switch as text, with those of its
// tunnels' groups that are not there yet.
func entryTexts(c *circuit, sw flow.DPID, cfg *Config, by besides) (list []string) {
	s := set{besides: by}
	if c.Type == vpls {
		most, storm := cfg.limits(c)
		s.lanEntries(&fabric{circuit: c, lan: newLAN(most, cfg.MACAge), active: c.arcs(), trees: [][]arc{c.arcs()}, storm: storm,
			group: func(flow.DPID, flow.DPID) uint32 { return flow.TunnelGroups }}, sw)
		for _, e := range c.ends {
			if e.at.Switch == sw {
				guards(&s, e.at.Port, map[end]map[string]bool{e: nil})
			}
		}
	}
	for i, e := range c.ends {
		if e.at.Switch != sw || c.Type == vpls {
			continue
		}
		group := uint32(0)
		if !c.local() {
			group = flow.TunnelGroups
		}
		s.pairEntries(c, i, group, nil, cfg.stormOf(c))
		guards(&s, e.at.Port, map[end]map[string]bool{e: nil})
	}
	for i := range s.entries {
		e := &s.entries[i]
		list = append(list, fmt.Sprint(sw, e.Table, e.Priority, e.Match.Text(), e.Meter, flow.FormatActions(e.Apply)))
	}
	return list
}

// draft returns a circuit with what it keeps of the one before, and labels that
// stand for those that it would be given.
func draft(c, old *circuit, cfg *Config, net *network) *circuit {
	n := c.copy()
	for i, e := range c.ends {
		m := &api.CircuitMember{End: e.String()}
		if old != nil && i < len(old.ends) && old.ends[i] == e {
			m.Meter, m.StormMeter = old.Members[i].Meter, old.Members[i].StormMeter
			n.inherit(m, old, old.Members[i])
		}
		for _, l := range n.labelsOf(m) {
			*l = cmp.Or(*l, flow.CircuitLabels)
		}
		switch {
		case c.RateKbps == 0:
			m.Meter = 0
		case m.Meter == 0:
			m.Meter = flow.CircuitMeters
		}
		switch {
		case !cfg.stormy(c):
			m.StormMeter = 0
		case m.StormMeter == 0:
			m.StormMeter = flow.CircuitMeters
		}
		n.Members = append(n.Members, m)
	}
	if n.Type != vpls {
		return n
	}
	if n.sameTree(old) {
		n.TreeLabels = old.TreeLabels
	} else if arcs, err := net.plant(n); err == nil {
		for _, a := range arcs {
			n.TreeLabels = append(n.TreeLabels, &api.CircuitLabel{Dpid: a.to.String(), Label: flow.CircuitLabels, From: a.from.String(), Leaves: a.leaves})
		}
	}
	return n
}

// preview returns what a batch of one circuit would be, and the tunnels that would be
// asked for.
func (t *batch) preview(b *store) (*api.CircuitPreview, []*api.Tunnel) {
	if err := t.refused[0]; err != nil {
		return &api.CircuitPreview{Reason: err.Error()}, nil
	}
	c := t.circuits[0]
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.circuits.Get(c.Name)
	p := &api.CircuitPreview{Feasible: true, Entries: b.difference(old, c)}
	for _, e := range c.ends {
		if why := b.net.unusable(e.at); why != "" && c.phaseAt(b.now()) != waits {
			p.Feasible, p.Reason = false, why
		}
		p.Labels = append(p.Labels, b.alloc.labels.peek(e.at.Switch))
	}
	if c.local() {
		p.Path = []string{c.ends[0].at.Switch.String()}
	}
	return p, b.wantsOf(c, old)
}

// fit says in the preview of a batch of one circuit what fits into it over the tunnels that it
// would have.
func (t *batch) fit(b *store, tunnels []*api.Tunnel, p *api.CircuitPreview) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := t.circuits[0]
	p.Mtu = b.net.mtu(c, tunnels)
	if why := tooSmall(c, p.Mtu); why != "" && p.Feasible {
		p.Feasible, p.Reason = false, why
	}
}

// wantsOf returns the tunnels that a circuit would be asked for, with what would be booked
// on them; old is the one before, nil if it is new. It is called with mu held.
func (b *store) wantsOf(c, old *circuit) []*api.Tunnel {
	if c.Type == vpls {
		c = draft(c, old, b.cfg, &b.net)
	}
	wants := b.tunnelsOf(c)
	b.tunnels.book(c, wants)
	return wants
}

// having returns how many circuits have a state.
func (b *store) having(state string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.status {
		if s.state == state {
			n++
		}
	}
	return n
}
