package serve

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"
)

// SetLabLink changes a link (api.LabServer).
func (s *server) SetLabLink(ctx context.Context, req *api.SetLabLinkRequest) (*api.LabLink, error) {
	if far := s.far(req.GetLab()); far != nil {
		return s.setFarLink(ctx, far, req)
	}
	l, err := open(req.GetLab())
	if err != nil {
		return nil, err
	}
	links, err := l.Links()
	if err != nil {
		return nil, err
	}
	k, err := findLink(l.Name(), links, req.GetLink())
	if a, b, ok := strings.Cut(req.GetLink(), " "); ok && err != nil {
		k, err = l.Link(a, b)
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	change, err := changeOf(req)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	to, set := stateOf(req, k.State)
	if change == (lab.Change{}) && !set {
		return nil, api.Errorf(codes.InvalidArgument, "nothing to set: give down, silent, rate_mbit, delay_ms, jitter_ms or loss_percent")
	}
	// A change that is begun is carried out: its caller may go.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	if change != (lab.Change{}) {
		if err := l.ShapeLink(ctx, k.A, k.B, change); err != nil {
			return nil, err
		}
	}
	if set && to != k.State {
		do := map[layout.LinkState]func(context.Context, string, string) error{
			layout.LinkIsUp: l.LinkUp, layout.LinkIsDown: l.LinkDown, layout.LinkIsSilent: l.LinkSilent,
		}[to]
		if err := do(ctx, k.A, k.B); err != nil {
			return nil, err
		}
	}
	if k, err = l.Link(k.A, k.B); err != nil {
		return nil, err
	}
	return linkOf(k), nil
}

// findLink returns the link that the service calls so.
func findLink(of string, links []layout.LinkStatus, name string) (layout.LinkStatus, error) {
	for _, k := range links {
		if linkName(k) == name {
			return k, nil
		}
	}
	such := ""
	if len(links) > 0 {
		such = ", such as " + linkName(links[0])
	}
	return layout.LinkStatus{}, fmt.Errorf("lab %s has no link %q; links are called as its graph does%s, or by their two ends, such as \"s1 s2\"", of, name, such)
}

// stateOf returns the state that a link is to have, and whether one is asked for.
func stateOf(req *api.SetLabLinkRequest, is layout.LinkState) (to layout.LinkState, set bool) {
	down, silent := is == layout.LinkIsDown, is == layout.LinkIsSilent
	if req.Down != nil {
		down = req.GetDown()
	}
	if req.Silent != nil {
		silent = req.GetSilent()
	}
	switch {
	case down:
		to = layout.LinkIsDown
	case silent:
		to = layout.LinkIsSilent
	default:
		to = layout.LinkIsUp
	}
	return to, req.Down != nil || req.Silent != nil
}

// changeOf returns what a request changes of a link's shape.
func changeOf(req *api.SetLabLinkRequest) (c lab.Change, err error) {
	within := func(what string, v *float64, least, most float64) bool {
		if v == nil {
			return false
		}
		if math.IsNaN(*v) || *v != 0 && *v < least || *v > most {
			err = fmt.Errorf("%s: %v is not allowed; allowed: 0, or %v to %v", what, *v, least, most)
			return false
		}
		return true
	}
	const longest = 10_000 // milliseconds
	if within("rate_mbit", req.RateMbit, 0.008, 1e6) {
		rate := topology.Rate(req.GetRateMbit() * 1e6)
		c.Rate = &rate
	}
	if within("delay_ms", req.DelayMs, 0, longest) {
		d := delay(req.GetDelayMs())
		c.Delay = &d
	}
	if within("jitter_ms", req.JitterMs, 0, longest) {
		d := delay(req.GetJitterMs())
		c.Jitter = &d
	}
	if within("loss_percent", req.LossPercent, 0, 100) {
		loss := topology.Percent(req.GetLossPercent())
		c.Loss = &loss
	}
	return c, err
}

func delay(ms float64) topology.Delay { return topology.Delay(ms * float64(time.Millisecond)) }

// PingLab pings one host from another (api.LabServer).
func (s *server) PingLab(ctx context.Context, req *api.PingLabRequest) (*api.PingLabResponse, error) {
	const most = 100
	if req.GetCount() > most {
		return nil, api.Errorf(codes.InvalidArgument, "count: %d packets; allowed: at most %d", req.GetCount(), most)
	}
	r, err := s.ping(ctx, req)
	if err != nil {
		return nil, err
	}
	return &api.PingLabResponse{
		From: r.From, To: r.To, Sent: uint32(r.Sent), Received: uint32(r.Received),
		MinMs: r.Min, AvgMs: r.Avg, MaxMs: r.Max, OutageMs: r.Outage, Error: r.Error,
	}, nil
}

func (s *server) ping(ctx context.Context, req *api.PingLabRequest) (r traffic.PingResult, err error) {
	pair, o := topology.Pair{From: req.GetFrom(), To: req.GetTo()}, traffic.PingOptions{IPv6: req.GetIpv6(), Count: int(req.GetCount())}
	far, l := s.far(req.GetLab()), (*lab.Lab)(nil)
	if far == nil {
		if l, err = open(req.GetLab()); err != nil {
			return r, err
		}
	}
	ctx, leave, err := enter(ctx, s.places.measures)
	if err != nil {
		return r, err
	}
	defer func() { err = leave(err) }()
	if far != nil {
		all, err := far.Ping(ctx, []topology.Pair{pair}, o)
		if err != nil {
			return r, api.Errorf(codes.FailedPrecondition, "%w", err)
		}
		return all[0], nil
	}
	if r, err = l.Ping(ctx, pair.From, pair.To, o); err != nil {
		return r, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	return r, nil
}

// maxSeconds bounds measurements.
const maxSeconds = 20

// IperfLab measures throughput (api.LabServer).
func (s *server) IperfLab(ctx context.Context, req *api.IperfLabRequest) (_ *api.IperfLabResponse, err error) {
	if req.GetSeconds() > maxSeconds {
		return nil, api.Errorf(codes.InvalidArgument, "seconds: %d; allowed: at most %d", req.GetSeconds(), maxSeconds)
	}
	if u := req.GetUdpMbit(); u != 0 && !(u >= 0.008 && u <= 1e5) {
		return nil, api.Errorf(codes.InvalidArgument, "udp_mbit: %v; allowed: 0 (TCP), or 0.008 to 100000", u)
	}
	l, err := s.running(req.GetLab())
	if err != nil {
		return nil, err
	}
	ctx, leave, err := enter(ctx, s.places.measures)
	if err != nil {
		return nil, err
	}
	defer func() { err = leave(err) }()
	r, err := l.Iperf(ctx, req.GetFrom(), req.GetTo(), traffic.IperfOptions{
		IPv6: req.GetIpv6(), Duration: time.Duration(req.GetSeconds()) * time.Second, UDP: topology.Rate(req.GetUdpMbit() * 1e6),
	})
	if err != nil {
		return nil, api.Errorf(codes.FailedPrecondition, "%w", err)
	}
	return &api.IperfLabResponse{
		From: r.From, To: r.To, Protocol: r.Protocol, Seconds: r.Seconds, SentMbit: r.SentMbit, ReceivedMbit: r.Mbit,
		Retransmits: uint32(r.Retransmits), LostPercent: r.LostPercent,
	}, nil
}

// RunLabTraffic sends packets between pairs of hosts (api.LabServer).
func (s *server) RunLabTraffic(ctx context.Context, req *api.RunLabTrafficRequest) (_ *api.RunLabTrafficResponse, err error) {
	const mostFlows, mostRate, most, firstPort = 64, 100_000, 2_000_000, 5000
	seconds := max(req.GetSeconds(), 1)
	total, sinks := 0.0, map[string]uint16{} // how many flows a host takes in
	for i, f := range req.GetFlows() {
		if !(f.GetRate() >= 0 && f.GetRate() <= mostRate) {
			return nil, api.Errorf(codes.InvalidArgument, "flow %d: %v packets a second; allowed: at most %d", i+1, f.GetRate(), mostRate)
		}
		total += f.GetRate() * float64(seconds)
	}
	switch {
	case len(req.GetFlows()) == 0 || len(req.GetFlows()) > mostFlows:
		return nil, api.Errorf(codes.InvalidArgument, "%d flows; allowed: 1 to %d", len(req.GetFlows()), mostFlows)
	case seconds > maxSeconds:
		return nil, api.Errorf(codes.InvalidArgument, "seconds: %d; allowed: at most %d", seconds, maxSeconds)
	case total > most:
		return nil, api.Errorf(codes.InvalidArgument, "%.0f packets; allowed: at most %d: ask for lower rates, or less time", total, most)
	}
	l, err := s.running(req.GetLab())
	if err != nil {
		return nil, err
	}
	ctx, leave, err := enter(ctx, s.places.measures)
	if err != nil {
		return nil, err
	}
	defer func() { err = leave(err) }()
	var flows []traffic.Flow
	for i, f := range req.GetFlows() {
		o := traffic.Options{Rate: f.GetRate(), Size: int(f.GetSize()), Duration: time.Duration(seconds) * time.Second, Seed: uint64(i + 1), Arrivals: traffic.PoissonArrivals}
		o.Port = firstPort + sinks[f.GetTo()]
		sinks[f.GetTo()]++
		if o.Rate == 0 {
			o.Rate = 100
		}
		if f.GetConstant() {
			o.Arrivals = traffic.ConstantArrivals
		}
		flows = append(flows, traffic.Flow{From: f.GetFrom(), To: f.GetTo(), Options: o})
	}
	resp := &api.RunLabTrafficResponse{}
	for _, r := range l.TrafficAll(ctx, flows) {
		resp.Flows = append(resp.Flows, flowOf(r))
	}
	return resp, nil
}

func flowOf(r traffic.FlowResult) *api.LabFlowResult {
	out := &api.LabFlowResult{From: r.From, To: r.To}
	if r.Err != nil {
		out.Error = r.Err.Error()
		return out
	}
	out.Sent, out.Received = uint32(r.Sent), uint32(r.Received)
	for _, v := range []struct {
		to   *float64
		from traffic.Figure
	}{{&out.MeanMs, r.Mean}, {&out.P50Ms, r.P50}, {&out.P99Ms, r.P99}, {&out.MaxMs, r.Max}} {
		if !math.IsNaN(float64(v.from)) {
			*v.to = float64(v.from)
		}
	}
	return out
}
