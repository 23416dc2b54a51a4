package serve

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/machine"
)

const (
	leastSample = 250 * time.Millisecond // over which processor time is looked at
	mostSample  = 15 * time.Second       // older samples are not compared with
	maxSampled  = 64                     // labs of which samples are remembered
)

// usages are the last samples of the labs' machines, by the labs' names.
type usages struct {
	mu   sync.Mutex // guards last
	last map[string][]lab.Sample
}

// before returns the last samples of a lab, if they can be compared with now.
func (u *usages) before(name string, now time.Time) ([]lab.Sample, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.last[name]
	if !ok {
		return nil, false
	}
	age := now.Sub(s[0].Taken)
	return s, age >= leastSample && age <= mostSample
}

func (u *usages) keep(name string, s []lab.Sample) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for other, o := range u.last {
		if age := s[0].Taken.Sub(o[0].Taken).Abs(); age > mostSample {
			delete(u.last, other)
		}
	}
	if u.last == nil {
		u.last = map[string][]lab.Sample{}
	}
	if len(u.last) < maxSampled {
		u.last[name] = s
	}
}

// GetLabUsage says what the nodes of a lab use of their machines (api.LabServer).
func (s *server) GetLabUsage(ctx context.Context, req *api.GetLabUsageRequest) (_ *api.LabUsage, err error) {
	l, err := s.running(req.GetLab())
	if err != nil {
		return nil, err
	}
	ctx, leave, err := enter(ctx, s.places.measures)
	if err != nil {
		return nil, err
	}
	defer func() { err = leave(err) }()
	was, ok := s.usages.before(req.GetLab(), time.Now())
	if !ok {
		if was, err = l.Samples(ctx); err != nil {
			return nil, api.Errorf(codes.FailedPrecondition, "%w", err)
		}
		if backoff.Sleep(ctx, leastSample) != nil {
			return nil, ctx.Err()
		}
	}
	is, err := l.Samples(ctx)
	if err != nil {
		return nil, api.Errorf(codes.FailedPrecondition, "%w", err)
	}
	s.usages.keep(req.GetLab(), is)
	return usageBetween(was, is, l.NodeNames()), nil
}

// usageBetween is what nodes use of their machines between two samples of each.
func usageBetween(was, is []lab.Sample, nodes []string) *api.LabUsage {
	resp := &api.LabUsage{}
	all := map[string]*api.LabNodeUsage{}
	shared := &api.LabNodeUsage{}
	for i, now := range is {
		resp.Processors += uint32(now.Processors)
		resp.Memory += now.Memory
		before := lab.Sample{Taken: now.Taken}
		if len(was) == len(is) {
			before = was[i]
		}
		seconds := now.Taken.Sub(before.Taken).Seconds()
		resp.Seconds = max(resp.Seconds, seconds)
		add := func(to *api.LabNodeUsage, u, old machine.Usage) {
			to.Processes += uint32(u.Processes)
			to.Memory += u.Memory
			to.CpuSeconds += u.CPU.Seconds()
			if seconds > 0 {
				to.CpuPercent += max(0, 100*(u.CPU-old.CPU).Seconds()/seconds) // less where processes have ended
			}
		}
		for node, u := range now.Nodes {
			all[node] = &api.LabNodeUsage{Node: node}
			add(all[node], u, before.Nodes[node])
		}
		add(shared, now.Shared, before.Shared)
	}
	for _, node := range nodes {
		if u := all[node]; u != nil {
			resp.Nodes = append(resp.Nodes, u)
		}
	}
	resp.Shared = shared
	return resp
}
