package chain

import (
	"fmt"
	"net/netip"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// traceChain answers api.TraceChain.
func (b *store) traceChain(q *api.TraceChainRequest) (*api.ChainTrace, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.chains.Get(q.Name)
	if c == nil {
		return nil, api.Errorf(codes.NotFound, "there is no chain %q; weft chain list shows those that are", q.Name)
	}
	t := &tracer{store: b, of: c, trace: &api.ChainTrace{}}
	if q.Back {
		t.to = back
	}
	var err error
	if t.cell, err = c.cellOfClient(q.Client); err != nil {
		return nil, err
	}
	ends := [2]flow.DPID{}
	for i, text := range []string{q.From, q.To} {
		if text == "" {
			continue
		}
		if ends[i], err = flow.ParseDPID(text); err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%s: %w", []string{"from", "to"}[i], err)
		}
		if b.net.Info(ends[i]) == nil {
			return nil, api.Errorf(codes.NotFound, "there is no switch %v; weft get switches shows those that are", ends[i])
		}
	}
	t.follow(ends[0], ends[1])
	return t.trace, nil
}

// cellOfClient returns the cell of a client, by its port or address.
func (c *chain) cellOfClient(client string) (int, error) {
	switch c.said.Hash {
	case "":
		if client == "" {
			return 0, nil
		}
		return 0, api.Errorf(codes.InvalidArgument, "client %q: every function of chain %s has one copy, for all clients; leave it out", client, c.said.Name)
	case "ports":
		if client == "" {
			return 0, nil
		}
		port, err := strconv.ParseUint(client, 10, 16)
		if err != nil {
			return 0, api.Errorf(codes.InvalidArgument, "client %q: want the client's port, 0 to 65535, by which chain %s chooses copies", client, c.said.Name)
		}
		return int(port) >> portShift % cells, nil
	}
	if client == "" {
		return 0, nil
	}
	a, err := netip.ParseAddr(client)
	if err != nil {
		return 0, api.Errorf(codes.InvalidArgument, "client %q: want the client's IP address, by which chain %s chooses copies", client, c.said.Name)
	}
	text := a.AsSlice()
	return int(text[len(text)-1]) % cells, nil
}

// tracer follows packets of a cell through a chain. It is used with mu held.
type tracer struct {
	*store
	of    *chain
	to    direction
	cell  int
	trace *api.ChainTrace
}

// follow follows packets from a switch to one, each of which may be 0: not given.
func (t *tracer) follow(from, to flow.DPID) {
	at := from
	for s := first(t.of, t.to); ; s = s.step() {
		for ; !s.over(); s = s.step() {
			f := t.of.functions[s.function]
			if len(t.alive(f)) > 0 {
				break
			}
			if t.of.block {
				t.hop(&api.ChainHop{Function: uint32(s.function + 1), Note: "dead"})
				t.trace.Verdict = fmt.Sprintf("dropped: function %d is dead, and the chain blocks", s.function+1)
				return
			}
			t.hop(&api.ChainHop{Function: uint32(s.function + 1), Note: "dead: skipped"})
		}
		if s.over() {
			t.deliverTo(at, to)
			return
		}
		f := t.of.functions[s.function]
		n := chooses(t.cell, len(f), t.alive(f))
		in, out := f[n].enters(t.to), f[n].enters(1-t.to)
		if at == 0 {
			at = in.Switch
		}
		if !t.walk(at, in) {
			return
		}
		note := ""
		if home := t.cell % len(f); home != n {
			note = fmt.Sprintf("in place of copy %d, which is dead", home+1)
		}
		t.hop(&api.ChainHop{Function: uint32(s.function + 1), Copy: uint32(n + 1), At: api.NewLocation(in), Out: api.NewLocation(out), Note: note})
		at = out.Switch
	}
}

func (t *tracer) hop(h *api.ChainHop) { t.trace.Hops = append(t.trace.Hops, h) }

// walk goes from a switch to a port of another, or with port 0 to that switch. It
// returns false where there is no way.
func (t *tracer) walk(at flow.DPID, to flow.Location) bool {
	tag := uint16(0)
	if at != to.Switch {
		var ok bool
		if tag, ok = t.tags.of(to); !ok {
			t.trace.Verdict = fmt.Sprintf("dropped: no VLAN identifier is given yet for the way to %v", to)
			return false
		}
	}
	for at != to.Switch {
		out, ok := t.next[at][to.Switch]
		if !ok || len(t.trace.Hops) > 1000 {
			t.trace.Verdict = fmt.Sprintf("dropped: no way is known from switch %v to switch %v", at, to.Switch)
			return false
		}
		t.hop(&api.ChainHop{At: api.NewLocation(flow.Location{Switch: at, Port: out}), Tag: uint32(tag)})
		far, ok := t.far(flow.Location{Switch: at, Port: out})
		if !ok {
			t.trace.Verdict = fmt.Sprintf("dropped: the link at %v is not up", flow.Location{Switch: at, Port: out})
			return false
		}
		at = far
	}
	return true
}

// far returns the switch behind a port of a link that is up.
func (t *tracer) far(at flow.Location) (flow.DPID, bool) {
	for _, l := range linksFrom(t.net, at.Switch) {
		if l.Src == at {
			return l.Dst.Switch, true
		}
	}
	return 0, false
}

// deliverTo ends behind the last function.
func (t *tracer) deliverTo(at, to flow.DPID) {
	switch {
	case at == 0: // all functions are skipped
		t.trace.Arrives, t.trace.Verdict = true, "all functions are skipped: forwarded as other packets"
		return
	case to != 0 && !t.walk(at, flow.Location{Switch: to}):
		return
	case to != 0:
		at = to
	}
	t.trace.Arrives, t.trace.Verdict = true, fmt.Sprintf("to its host from switch %v on", at)
}
