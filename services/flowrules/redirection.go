package flowrules

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// redirection is where the packets of a switch go.
type redirection struct {
	number       uint16 // of the controllers that receive them; 0: the connections without a number
	undirectable bool   // the switch refuses entries with such a number
}

// apply rewrites a service's declared entries to the connections that receive
// the packets of the switch.
func (d *redirection) apply(owner flow.Owner, entries []flow.Entry) {
	if d.number == 0 || !directable(owner) {
		return
	}
	for i := range entries {
		if e, ok := redirectEntry(&entries[i], 0, d.number); ok {
			entries[i] = e
		}
	}
}

// directable reports whether an owner's entries follow the direction of their
// switch. The services' do, except discovery's: its probes belong to the process
// that knows the ports.
func directable(o flow.Owner) bool {
	return o != flow.OwnerDiscovery && o != flow.OwnerOperator && o != flow.OwnerForeign
}

// redirectEntry returns the entry with its output to connection from changed to
// connection to; false if it has no such output.
func redirectEntry(e *flow.Entry, from, to uint16) (flow.Entry, bool) {
	reason := flow.ReasonAction
	if e.Priority == 0 && e.Match.Set == 0 {
		reason = flow.ReasonNoMatch // OpenFlow 1.3.5 §7.4.1: a table miss
	}
	changed := false
	list := func(actions []flow.Action) []flow.Action {
		var out []flow.Action
		for i, a := range actions {
			b, ok := redirect(a, from, to, reason)
			if !ok {
				continue
			}
			if out == nil {
				out = slices.Clone(actions)
			}
			out[i], changed = b, true
		}
		if out == nil {
			return actions
		}
		return out
	}
	again := *e
	again.Apply, again.Write = list(e.Apply), list(e.Write)
	return again, changed
}

func redirect(a flow.Action, from, to uint16, reason flow.Reason) (flow.Action, bool) {
	length := a.MaxLen
	if from == 0 {
		if a.Kind != flow.ActionOutput || flow.Port(a.Arg) != flow.PortController {
			return a, false
		}
	} else {
		c, ok := flow.ParseController(a)
		if !ok || c.ID != from {
			return a, false
		}
		length = c.MaxLen
	}
	if to == 0 {
		b := flow.Output(flow.PortController)
		b.MaxLen = length
		return b, true
	}
	return flow.Controller{ID: to, MaxLen: length, Reason: reason}.Action(), true
}
