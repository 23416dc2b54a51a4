package firewall

import (
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The states of a rule.
const (
	inForce    = "in force"
	pending    = "pending"
	notInForce = "not in force"
)

// reasonsMost is how many switches the reason of a rule's state names.
const reasonsMost = 3

// answered records which entries a switch does not have of those that it was declared last.
func (b *store) answered(sw flow.DPID, failed []*api.WantedFlow) {
	reasons := map[uint32]string{}
	for _, f := range failed {
		number := uint32(0) // of no rule: all depend on it
		if _, e, err := f.GetFlow().Entry(); err == nil {
			number = e.Cookie.ID()
		}
		reasons[number] = f.GetReason()
	}
	s := b.sites.of(sw)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = reasons
}

// stand is how a switch stands to the rules.
type stand struct {
	sw     flow.DPID
	info   *api.Switch
	state  string
	reason string
	failed map[uint32]string // if only those rules are not in force
}

type stands []stand

// stands returns how the connected switches stand to the rules.
func (b *store) stands() (list stands) {
	set := b.now.Load()
	for _, s := range b.sites.all() {
		state, err := b.keeper.Status(s.dpid)
		s.mu.Lock()
		info, p, version, failed := s.info, s.program, s.version, s.failed
		s.mu.Unlock()
		if !info.GetConnected() {
			continue
		}
		x := stand{sw: s.dpid, info: info, state: pending, reason: "not confirmed yet"}
		switch {
		case state == "failing":
			if x.state, x.reason = notInForce, "not confirmed"; err != nil {
				x.reason = err.Error()
			}
			if p != nil && p.mode == modeCompiled && len(failed) > 0 && failed[0] == "" {
				x.failed = failed
			}
		case state == "in_sync" && version >= set.version:
			if x.state, x.reason = inForce, ""; p != nil && p.mode != modeCompiled && p.mode != modeOff {
				x.reason = "judged by the controller: " + p.reason
			}
		}
		list = append(list, x)
	}
	return list
}

// of returns the state of a rule, that of the switch where it is worst, and why, by switch.
func (list stands) of(r *rule) (state, reason string) {
	state = inForce
	var reasons []string
	for _, s := range list {
		if r.local && r.sw != s.sw {
			continue
		}
		if why := s.info.Lack(r.asks...); why != "" {
			s.state, s.reason, s.failed = notInForce, "it "+why, nil
		}
		if s.failed != nil {
			s.reason = s.failed[r.number()]
			if s.reason == "" {
				continue
			}
		}
		if s.state == notInForce || s.state == pending && state == inForce {
			state = s.state
		}
		if s.reason != "" && len(reasons) < reasonsMost {
			reasons = append(reasons, "switch "+s.sw.String()+": "+s.reason)
		}
	}
	return state, strings.Join(reasons, "; ")
}
