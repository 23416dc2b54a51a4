package tunnels

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// batchMax is the most tunnels that one call may name.
const batchMax = 4096

// setTunnels answers SetTunnels.
func (r *repairer) setTunnels(ctx context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
	if n := len(q.GetTunnels()) + len(q.GetDelete()); n == 0 || n > batchMax {
		return nil, api.Errorf(codes.InvalidArgument, "%d tunnels: want 1 to %d", n, batchMax)
	}
	names := map[string]bool{}
	for _, m := range q.Tunnels {
		if names[m.GetName()] {
			return nil, api.Errorf(codes.InvalidArgument, "tunnels: %.80q is given twice", m.GetName())
		}
		names[m.GetName()] = true
	}
	for _, name := range q.Delete {
		if names[name] {
			return nil, api.Errorf(codes.InvalidArgument, "delete: %.80q is given twice", name)
		}
		names[name] = true
	}
	if q.DryRun {
		return r.preview(ctx, q), nil
	}
	resp := &api.SetTunnelsResponse{}
	for _, m := range q.Tunnels {
		m = proto.CloneOf(m)
		if m != nil {
			m.User = q.User
		}
		result, err := r.set(ctx, m)
		resp.Outcomes = append(resp.Outcomes, outcome(m.GetName(), result, err))
	}
	for _, name := range q.Delete {
		old, err := r.b.remove(ctx, name, q.User)
		o := outcome(name, unchanged, err)
		if old != nil {
			o.Result, o.Tunnel = deleted, old
		}
		resp.Outcomes = append(resp.Outcomes, o)
	}
	r.repair(ctx)
	for _, o := range resp.Outcomes[:len(q.Tunnels)] {
		if o.Code == 0 {
			o.Tunnel = r.b.get(o.Name)
		}
	}
	return resp, nil
}

// set stores what a client wants of a tunnel, and returns what became of it. A change
// for which there is no path is refused, if the tunnel has one that it could lose.
func (r *repairer) set(ctx context.Context, m *api.Tunnel) (result string, err error) {
	b := r.b
	t, err := readTunnel(m)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	s := b.status[t.name]
	loses := s.loses(t)
	b.mu.Unlock()
	if loses {
		q := &quest{t: t}
		if err := r.alone(ctx, []*quest{q}, nil); err != nil {
			return "", api.Errorf(codes.Unavailable, "tunnel %s stays as it is: %w", t.name, err)
		}
		if len(q.found) == 0 {
			return "", api.Errorf(codes.ResourceExhausted, "tunnel %s stays as it is: %s", t.name, q.why)
		}
	}
	return b.set(ctx, t)
}

// loses reports whether a tunnel has a path that it could lose if it were t, for which
// another has to be found; nil is none.
func (s *status) loses(t *tunnel) bool {
	return s != nil && s.state != "down" && s.tunnel.from == t.from && s.tunnel.to == t.to && !sameDemand(s.tunnel, t) && !t.overlay() && s.tunnel.keptBy(t.wanted.User) == nil
}

// What becomes of a tunnel.
const (
	made      = "made"
	changed   = "changed"
	unchanged = "unchanged"
	deleted   = "deleted"
	failed    = "failed"
)

func outcome(name, result string, err error) *api.TunnelOutcome {
	o := &api.TunnelOutcome{Name: name, Result: result}
	if err != nil {
		o.Result, o.Code, o.Error = failed, uint32(api.KindOf(err)), err.Error()
	}
	return o
}

// preview answers SetTunnels without changing anything.
func (r *repairer) preview(ctx context.Context, q *api.SetTunnelsRequest) *api.SetTunnelsResponse {
	resp := &api.SetTunnelsResponse{}
	for _, m := range q.Tunnels {
		m = proto.CloneOf(m)
		if m != nil {
			m.User = q.User
		}
		resp.Outcomes = append(resp.Outcomes, r.would(ctx, m))
	}
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range q.Delete {
		o := outcome(name, unchanged, nil)
		if s := b.status[name]; s != nil {
			o = outcome(name, deleted, s.tunnel.keptBy(q.User))
			o.Tunnel = b.message(s)
		}
		resp.Outcomes = append(resp.Outcomes, o)
	}
	return resp
}

// would returns what would become of a tunnel.
func (r *repairer) would(ctx context.Context, m *api.Tunnel) *api.TunnelOutcome {
	b := r.b
	t, err := readTunnel(m)
	if err != nil {
		return outcome(m.GetName(), "", err)
	}
	b.mu.Lock()
	s := b.status[t.name]
	var old *tunnel
	if s != nil {
		old = s.tunnel
	}
	loses := s.loses(t)
	result, now, err := b.admit(old, t)
	b.mu.Unlock()
	o := outcome(t.name, result, err)
	switch {
	case err != nil:
		return o
	case result == unchanged:
		o.Tunnel = b.get(t.name)
		return o
	}
	q := &quest{t: now}
	if old != nil && sameDemand(old, now) {
		q.found = old.paths(onPrimary)
	} else if now.overlay() {
		b.mu.Lock()
		b.foresee(q)
		b.mu.Unlock()
	} else if err := r.alone(ctx, []*quest{q}, nil); err != nil {
		return outcome(t.name, "", err)
	}
	if len(q.found) == 0 && loses {
		return outcome(t.name, "", api.Errorf(codes.ResourceExhausted, "tunnel %s stays as it is: %s", t.name, q.why))
	}
	o.Preempts = b.takenFrom(q.takes)
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &status{tunnel: now, entered: now, since: b.now()}
	primary, standby := b.arrange(w, q)
	would, taken, err := b.labelled(now, primary, standby)
	b.labels.release(taken)
	if err != nil {
		q.why, would = err.Error(), now.with(nil, nil)
	}
	w.tunnel, w.entered = would, would
	if w.assess(b, q.why); now.overlay() && len(q.found) > 0 {
		w.state, w.reason = "up", ""
	}
	o.Tunnel = b.message(w)
	return o
}
