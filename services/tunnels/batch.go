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
		result, err := r.b.set(ctx, m)
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
			o.Tunnel = s.message()
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
	primary, standby, lacking := r.choose(ctx, now)
	would := now.with(primary, standby)
	w := &status{tunnel: would, entered: would, since: b.now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.assess(w, text(lacking))
	o.Tunnel = w.message()
	return o
}
