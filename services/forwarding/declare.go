package forwarding

import (
	"context"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// isConfirmed reports whether a switch has confirmed the entries for these tree
// ports, in order, and their inputs have not changed since; mu is held.
func (f *flooding) isConfirmed(sw flow.DPID, s *floodSwitch, tree []flow.Port) bool {
	return s.done && slices.Equal(s.tree, tree) && s.made == f.inputs(sw)
}

// sendBaseline sets the baseline flows of a switch for the given tree ports, in
// order, unless they are already set, and records what may be in force.
func (f *flooding) sendBaseline(ctx context.Context, sw flow.DPID, s *floodSwitch, tree []flow.Port) error {
	made := f.inputs(sw)
	entries, groups := f.standingEntries(sw, tree, s.v10, s.table)
	if len(entries) > 0 && s.table != 0 {
		entries = append(entries, dropObscured(s.ovs)...)
		entries = append(entries, copyEntries(s.ovs)...)
	}
	digest := digestOf(entries, groups)
	f.mu.Lock()
	if s.done && digest == s.sent {
		s.made, s.tree = made, slices.Clone(tree)
		f.mu.Unlock()
		return nil
	}
	if s.refused != nil && digest == s.sent && time.Now().Before(s.until) {
		f.mu.Unlock()
		return s.refused
	}
	s.try++
	try := s.try
	s.sent, s.done = digest, false
	s.tree = union(s.tree, tree)
	guarded := s.dropping
	s.dropping = union(s.dropping, droppingPorts(entries))
	f.mu.Unlock()

	if kept := keepDropEntries(entries, guarded); len(kept) > 0 {
		if err := f.declare(ctx, sw, append(slices.Clone(entries), kept...), groups); err != nil {
			return f.failed(sw, s, err)
		}
	}
	if err := f.declare(ctx, sw, entries, groups); err != nil {
		return f.failed(sw, s, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.refused, s.retry = nil, api.Retry{}
	if s.try == try {
		s.done, s.made = true, made
		s.tree, s.dropping = slices.Clone(tree), droppingPorts(entries)
	}
	return nil
}

// declare sends the whole set of a switch, and returns when it is confirmed.
func (f *flooding) declare(ctx context.Context, sw flow.DPID, entries []flow.Entry, groups []flow.Group) error {
	req := &api.SetStandingRequest{Dpid: sw.String(), Owner: flow.OwnerForwarding.String(), Flows: entryMessages(sw, entries)}
	for i := range groups {
		req.Groups = append(req.Groups, api.NewGroup(sw, &groups[i]))
	}
	resp, err := f.set(ctx, req)
	if err != nil {
		return err
	}
	return resp.Confirmed(len(entries))
}

// failed records that a switch has not confirmed its entries, and returns why. A
// switch that refuses them is asked for the same again ever more rarely.
func (f *flooding) failed(sw flow.DPID, s *floodSwitch, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	pause, news := s.retry.After(err, refusedFirst, refusedFirst)
	if s.refused = nil; api.RefusedBySwitch(err) {
		s.refused, s.until = err, time.Now().Add(pause)
	}
	if news && f.switches[sw] == s {
		f.log.Warn("flooding not confirmed; tried again", "dpid", sw, "error", err)
	}
	return err
}

// refusedFirst is the first pause before a switch is asked again for what it has
// refused.
const refusedFirst = time.Second
