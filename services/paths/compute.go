package paths

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/pce"
)

// The bounds of one request.
const (
	demandsMax  = 4096
	bookingsMax = 200_000
)

// computePaths answers ComputePaths.
func (c *convergence) computePaths(ctx context.Context, req *api.ComputePathsRequest) (*api.ComputePathsResponse, error) {
	if n := len(req.GetDemands()); n == 0 || n > demandsMax {
		return nil, api.Errorf(codes.InvalidArgument, "%d demands: want 1 to %d", n, demandsMax)
	}
	if n := len(req.GetBookings()); n > bookingsMax {
		return nil, api.Errorf(codes.InvalidArgument, "%d bookings: want at most %d: add up those of one direction of a link and priority", n, bookingsMax)
	}
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	n, err := c.said.of(c.graph.Current())
	c.mu.Unlock()
	if err != nil {
		return nil, api.Errorf(codes.FailedPrecondition, "paths under constraints: %w", err)
	}
	g, err := n.booked(req.GetBookings())
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	resp := &api.ComputePathsResponse{Version: n.topology, Placed: true}
	var demands []pce.Demand
	var of []int // the answers of demands
	for i, m := range req.GetDemands() {
		answer := &api.PathAnswer{Name: m.GetName()}
		resp.Answers = append(resp.Answers, answer)
		d, err := n.demand(m)
		var lacks absent
		switch {
		case errors.As(err, &lacks):
			answer.Reason = "no path: " + lacks.text
		case err != nil:
			what := fmt.Sprintf("demand %d", i+1)
			if m.GetName() != "" {
				what += fmt.Sprintf(" (%.80q)", m.GetName())
			}
			return nil, api.Errorf(codes.InvalidArgument, "%s: %w", what, err)
		default:
			demands, of = append(demands, *d), append(of, i)
		}
	}
	lacking := len(demands) < len(resp.Answers)
	if req.GetAllOrNothing() && lacking {
		resp.Placed = false
		return resp, nil
	}
	results, placed := g.Place(demands, req.GetAllOrNothing())
	resp.Placed = placed
	for i, r := range results {
		answer := resp.Answers[of[i]]
		if r.Err != nil {
			answer.Reason = n.reason(r.Err)
		}
		for j := range r.Routes {
			if !placed {
				break
			}
			answer.Paths = append(answer.Paths, n.message(&r.Routes[j]))
			for _, p := range r.Routes[j].Preempts {
				answer.Preempts = append(answer.Preempts, &api.PathPreemption{
					Src: api.NewLocation(n.links[p.Link].Src), Priority: uint32(p.Priority), Kbps: p.Bandwidth,
				})
			}
		}
	}
	return resp, nil
}
