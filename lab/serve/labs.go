package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/nodes"

	"github.com/weft-sdn/weft/lab/topology"
)

// ListLabs lists the labs of the machine (api.LabServer).
func (s *server) ListLabs(ctx context.Context, _ *api.ListLabsRequest) (*api.ListLabsResponse, error) {
	labs, err := lab.List(ctx)
	if err != nil {
		return nil, err
	}
	resp := &api.ListLabsResponse{}
	for _, l := range labs {
		resp.Labs = append(resp.Labs, &api.LabSummary{
			Name: l.Name, State: l.State, Created: stamp(l.Created), Controllers: l.Controllers,
			Switches: uint32(l.Switches), Hosts: uint32(l.Hosts), Links: uint32(l.Links),
			Programs: uint32(l.Programs), Running: uint32(l.Running),
		})
	}
	far, err := s.farLabs()
	resp.Labs = append(resp.Labs, far...)
	return resp, err
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// parse reads a lab file of a request.
func parse(text string, b topology.Bounds) (*topology.Topology, error) {
	if len(text) > maxFile {
		return nil, topology.Problems{{What: fmt.Sprintf("the lab file has %d octets", len(text)), Allowed: fmt.Sprintf("at most %d", maxFile)}}
	}
	return topology.ParseBounded("lab.yaml", []byte(text), b)
}

// CheckLab says what is wrong with a lab file (api.LabServer).
func (s *server) CheckLab(ctx context.Context, req *api.CheckLabRequest) (*api.CheckLabResponse, error) {
	leave, err := s.places.await(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	t, err := parse(req.GetFile(), bounds())
	if problems := (topology.Problems{}); errors.As(err, &problems) {
		resp := &api.CheckLabResponse{}
		for _, p := range problems {
			resp.Problems = append(resp.Problems, &api.LabProblem{Line: uint32(p.Line), Text: p.What, Allowed: p.Allowed})
		}
		return resp, nil
	}
	if err != nil {
		return nil, err
	}
	return &api.CheckLabResponse{Name: t.Name, Remarks: topology.Remarks(t), Graph: graphOf(lab.GraphOf(t))}, nil
}

// made returns the topology of a file of a request, and an error if there is
// something wrong with it, or if the service does not allow what it needs.
func (s *server) made(text string) (*topology.Topology, error) {
	t, err := parse(text, bounds())
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	runs := slices.ContainsFunc(t.Hosts, func(h topology.Host) bool { return len(h.Run) > 0 })
	if runs {
		if err := s.o.allow(AllowRun); err != nil {
			return nil, fmt.Errorf("hosts of the file run programs: %w", err)
		}
	}
	return t, nil
}

// DownLab takes a lab down (api.LabServer).
func (s *server) DownLab(ctx context.Context, req *api.DownLabRequest) (*api.DownLabResponse, error) {
	if err := s.o.allow(AllowDown); err != nil {
		return nil, err
	}
	if err := s.jobs.idle(req.GetLab()); err != nil {
		return nil, err
	}
	if far := s.far(req.GetLab()); far != nil {
		return downFar(ctx, far)
	}
	was := lab.Exists(req.GetLab())
	// Half a lab is worse than one that is taken down after its caller has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := lab.Down(ctx, req.GetLab()); err != nil {
		if !was {
			return nil, api.Errorf(codes.InvalidArgument, "%w", err)
		}
		return nil, err
	}
	return &api.DownLabResponse{Down: was}, nil
}

// GetLab answers what a lab is (api.LabServer).
func (s *server) GetLab(ctx context.Context, req *api.GetLabRequest) (*api.LabDetails, error) {
	if far := s.far(req.GetLab()); far != nil {
		d := s.getFar(far)
		if reader(ctx) {
			text, err := far.Topology.ForReaders().YAML()
			if err != nil {
				return nil, err
			}
			d.File = string(text)
		}
		return d, nil
	}
	l, err := open(req.GetLab())
	if err != nil {
		return nil, err
	}
	text, err := l.Text()
	if err == nil && reader(ctx) {
		text, err = l.Topology().ForReaders().YAML()
	}
	if err != nil {
		return nil, err
	}
	revision, err := l.Revision()
	if err != nil {
		return nil, err
	}
	g, err := l.Graph()
	if err != nil {
		return nil, err
	}
	d := &api.LabDetails{
		Name: l.Name(), State: l.State(), Created: stamp(l.Created()), File: string(text), Revision: revision,
		Graph: graphOf(g), Controllers: l.Topology().Controllers,
	}
	sessions, err := l.Sessions(ctx)
	if err != nil {
		sessions = nil // of a lab that is broken: its state says so
	}
	programs := l.Programs(ctx)
	for _, n := range d.Graph.GetNodes() {
		place, err := l.PlaceOf(n.Name)
		if err != nil {
			return nil, err
		}
		n.Namespace, n.Own, n.Control = place.Namespace, place.Own, nodes.Connected(sessions[n.Name])
		for _, c := range sessions[n.Name] {
			n.Sessions = append(n.Sessions, &api.LabSession{Controller: c.Controller, Connected: c.Connected, Role: c.Role})
		}
		for _, p := range programs {
			for _, q := range n.Programs {
				if p.Host == n.Name && p.Name == q.Name {
					q.State = string(p.State)
				}
			}
		}
	}
	return d, nil
}

// reader reports whether who calls may only look at labs. Who calls without a role has
// opened the socket, and may all.
func reader(ctx context.Context) bool { return machineservice.CallerOf(ctx).Role == "read" }

// graphOf returns a graph as the service shows it.
func graphOf(g lab.Graph) *api.LabGraph {
	out := &api.LabGraph{}
	for i := range g.Topology.Switches {
		s := &g.Topology.Switches[i]
		n := &api.LabNode{Name: s.Name, Kind: string(s.Kind)}
		if s.Kind == "" {
			n.Kind = string(topology.KindOpenFlow)
		}
		if s.DPID != 0 {
			n.Dpid = s.DPID.String()
		}
		if s.Loopback.IsValid() {
			n.Ipv4 = s.Loopback.String() + "/32"
		}
		if s.Loopback6.IsValid() {
			n.Ipv6 = s.Loopback6.String() + "/128"
		}
		out.Nodes = append(out.Nodes, n)
	}
	for i := range g.Topology.Hosts {
		h := &g.Topology.Hosts[i]
		n := &api.LabNode{Name: h.Name, Kind: "host", Mac: h.MAC.String(), Vlan: uint32(h.VLAN), Own: true}
		if h.HasIPv4() {
			n.Ipv4 = h.IPv4.String()
		}
		if h.HasIPv6() {
			n.Ipv6 = h.IPv6.String()
		}
		for _, p := range h.Run {
			n.Programs = append(n.Programs, &api.LabProgram{Name: p.Name, Command: p.Command})
		}
		out.Nodes = append(out.Nodes, n)
	}
	for _, k := range g.Links {
		out.Links = append(out.Links, linkOf(k))
	}
	return out
}

// linkName is what the service calls a link.
func linkName(k layout.LinkStatus) string { return k.A + "-" + k.B }

func linkOf(k layout.LinkStatus) *api.LabLink {
	l := &api.LabLink{
		Link: linkName(k), State: string(k.State), Made: k.Made,
		RateMbit: float64(k.Rate) / 1e6, DelayMs: ms(k.Delay), JitterMs: ms(k.Jitter), LossPercent: float64(k.Loss),
	}
	l.A, l.APort, _ = endOf(k.A)
	l.B, l.BPort, l.BInterface = endOf(k.B)
	if l.BPort == 0 && l.BInterface == "" {
		l.BInterface = "eth0"
	}
	return l
}

// endOf reads an end of a link: SWITCH:PORT, HOST or HOST:INTERFACE.
func endOf(end string) (node string, port uint32, iface string) {
	node, iface, _ = strings.Cut(end, ":")
	if _, err := fmt.Sscanf(iface, "%d", &port); err == nil {
		iface = ""
	}
	return node, port, iface
}

func ms(d topology.Delay) float64 { return float64(d) / float64(time.Millisecond) }
