package serve

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// mostOutput is how many octets are kept of what a command that sets a node up has written.
const mostOutput = 16 << 10

// SetUpLab begins to set nodes of a lab up (api.LabServer).
func (s *server) SetUpLab(ctx context.Context, req *api.SetUpLabRequest) (*api.SetUpLabResponse, error) {
	if err := s.o.allow(AllowExec); err != nil {
		return nil, err
	}
	l, err := s.running(req.GetLab())
	if err != nil {
		return nil, err
	}
	text, err := l.Text()
	if err != nil {
		return nil, err
	}
	list, err := topology.SetupsOf(text, req.GetNodes())
	if err != nil {
		return nil, api.Errorf(codes.FailedPrecondition, "lab %s: %w", req.GetLab(), err)
	}
	var nodes []string
	for _, n := range list {
		nodes = append(nodes, n.Node)
	}
	id, err := s.jobs.start(s.ctx, machineservice.CallerOf(ctx), "setup", req.GetLab(), nodes, func(ctx context.Context, j *job) error {
		var failed atomic.Int64
		lab.SetUp(ctx, list, func(ctx context.Context, at int) {
			node := list[at].Node
			j.set(node, stepWorking, l.Where(node), "")
			out, err := l.Exec(ctx, node, "sh", "-c", list[at].Command)
			if err != nil {
				failed.Add(1)
				j.set(node, stepFailed, err.Error(), out)
				return
			}
			j.set(node, stepDone, l.Where(node), out)
		})
		if n := failed.Load(); n > 0 {
			return fmt.Errorf("%d of %d nodes are not set up", n, len(list))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.SetUpLabResponse{Job: id}, nil
}

// set says where a job is with a node, and what was written there.
func (j *job) set(node, state, text, output string) {
	if over := len(output) - mostOutput; over > 0 {
		output = output[over:]
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.step[node]; s != nil {
		s.State, s.Text, s.Output = state, strings.ToValidUTF8(text, "�"), strings.ToValidUTF8(output, "�")
	}
}
