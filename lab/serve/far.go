package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/lab/testbed"
)

// farAge is how old what is said of a lab on several machines may be: to ask them takes
// a while.
const farAge = 10 * time.Second

// fars are the labs on several machines, as they were when they were last asked.
type fars struct {
	mu sync.Mutex // guards of, and what is in it
	of map[string]*far
}

type far struct {
	revision string // of the lab that this is said of
	asked    time.Time
	asking   bool
	broken   string // why, in one line
	links    []layout.LinkStatus
}

// far returns the lab on several machines of a name; nil if there is none.
func (s *server) far(name string) *testbed.Lab {
	if !testbed.Exists(name) {
		return nil
	}
	l, err := testbed.Open(name)
	if err != nil {
		return nil // it is being made, or removed
	}
	return l
}

// look returns the state and links of a lab on several machines as they were last known,
// and has them asked if that was a while ago.
func (s *server) look(l *testbed.Lab) (string, []layout.LinkStatus) {
	s.fars.mu.Lock()
	defer s.fars.mu.Unlock()
	for name := range s.fars.of {
		if !testbed.Exists(name) {
			delete(s.fars.of, name)
		}
	}
	f := s.fars.of[l.Name]
	if f == nil || f.revision != l.Revision() {
		f = &far{revision: l.Revision(), links: lab.GraphOf(l.Topology).Links}
		s.fars.of[l.Name] = f
	}
	if l.Ready && !f.asking && time.Since(f.asked) > farAge && s.ctx.Err() == nil {
		f.asking = true
		s.jobs.wg.Go(func() {
			links, err := l.Links(s.ctx)
			s.fars.mu.Lock()
			defer s.fars.mu.Unlock()
			f.asking, f.asked, f.broken = false, time.Now(), ""
			if err == nil {
				f.links = links
			} else {
				first, _, _ := strings.Cut(err.Error(), "\n")
				f.broken = "broken: " + first
			}
		})
	}
	switch {
	case !l.Ready:
		return "half made", f.links
	case l.Was != nil:
		return testbed.HalfApplied, f.links
	case f.broken != "":
		return f.broken, f.links
	}
	return "up", f.links
}

// forget says that the links of a lab on several machines are to be asked again.
func (f *fars) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.of[name]; one != nil {
		one.asked = time.Time{}
	}
}

func machinesOf(l *testbed.Lab) (names []string) {
	for _, k := range l.Machines.List {
		names = append(names, k.Name)
	}
	return names
}

// farLabs are the labs on several machines, in lines.
func (s *server) farLabs() ([]*api.LabSummary, error) {
	names, err := testbed.Names()
	if err != nil {
		return nil, err
	}
	var all []*api.LabSummary
	for _, name := range names {
		l := s.far(name)
		if l == nil {
			continue
		}
		state, _ := s.look(l)
		t := l.Topology
		all = append(all, &api.LabSummary{
			Name: name, State: state, Created: stamp(l.Created), Controllers: l.Controllers(), Machines: machinesOf(l),
			Switches: uint32(len(t.Switches)), Hosts: uint32(len(t.Hosts)), Links: uint32(len(t.Links)),
		})
	}
	return all, nil
}

func (s *server) getFar(l *testbed.Lab) *api.LabDetails {
	state, links := s.look(l)
	d := &api.LabDetails{
		Name: l.Name, State: state, Created: stamp(l.Created), File: l.File, Revision: l.Revision(),
		Graph: graphOf(lab.Graph{Topology: l.Topology, Links: links}), Controllers: l.Controllers(), Machines: machinesOf(l),
	}
	for _, n := range d.Graph.Nodes {
		n.Machine = l.Mapping.MachineOf(n.Name)
	}
	return d
}

// reach reads the resource file of a request that is to be carried out. Neither files of this
// machine nor programs of others are for clients to name: the identity is the service's, and
// what machines there are is said by the keys that it knows.
func (o Options) reach(text string) (*testbed.Machines, error) {
	if o.SSHIdentity == "" {
		return nil, api.Errorf(codes.PermissionDenied,
			"the lab service of this machine reaches no others: start it with `weft lab serve --ssh-identity FILE --ssh-known-hosts FILE`, whose machines it may then use")
	}
	m, err := machines(text)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if m.Identity != "" || m.KnownHosts != "" {
		return nil, api.Errorf(codes.InvalidArgument, "a resource file that a client sends names no files of ssh: leave identity and known_hosts out, the lab service has its own")
	}
	for _, k := range m.List {
		if k.Weft != "" {
			return nil, api.Errorf(codes.InvalidArgument, "machine %s: a resource file that a client sends names no program: leave weft out, and it is copied there", k.Name)
		}
	}
	m.Identity, m.KnownHosts, m.Alone = o.SSHIdentity, o.SSHKnownHosts, true
	return m, nil
}

// upFar begins to bring a lab up on several machines.
func (s *server) upFar(ctx context.Context, req *api.UpLabRequest, t *topology.Topology) (*api.UpLabResponse, error) {
	m, err := s.o.reach(req.GetMachines())
	if err != nil {
		return nil, err
	}
	is, err := testbed.Check(t, m, req.GetControllers())
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	on := map[string][]string{}
	for _, p := range is.Nodes {
		on[p.Machine] = append(on[p.Machine], p.Node)
	}
	id, err := s.jobs.start(s.ctx, machineservice.CallerOf(ctx), "up", t.Name, nodesOf(t), func(ctx context.Context, j *job) error {
		l, err := testbed.Up(ctx, t, m, testbed.Options{
			Controllers: req.GetControllers(), Program: s.o.Program,
			Progress: func(machine, doing string) {
				j.at(on[machine], machine, doing)
			},
		})
		if err != nil {
			return err
		}
		if died := errors.Join(l.Died...); died != nil {
			s.o.Log.Warn("programs of a lab have died", "lab", l.Name, "error", died)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.UpLabResponse{Job: id, Lab: t.Name}, nil
}

// applyFar makes a lab on several machines what a changed file says.
func (s *server) applyFar(ctx context.Context, j *job, name string, text []byte, madeFrom string) error {
	_, err := testbed.Apply(ctx, name, "lab.yaml", text, testbed.ApplyOptions{MadeFrom: madeFrom, Progress: func(machine, doing string) {
		j.doing("machine " + machine + ": " + doing)
	}})
	return err
}

// at says what is done to the nodes of a machine.
func (j *job) at(nodes []string, machine, doing string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.is.Doing = fmt.Sprintf("machine %s: %s", machine, doing)
	for _, node := range nodes {
		if s := j.step[node]; s != nil {
			s.State, s.Text = stepWorking, fmt.Sprintf("machine %s: %s", machine, doing)
			if doing == testbed.DoneUp {
				s.State = stepDone
			}
		}
	}
}

// downFar takes a lab on several machines down.
func downFar(ctx context.Context, l *testbed.Lab) (*api.DownLabResponse, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	if err := l.Down(ctx, false); err != nil {
		return nil, api.Errorf(codes.FailedPrecondition, "%w", err)
	}
	return &api.DownLabResponse{Down: true}, nil
}

// setFarLink changes a link of a lab on several machines.
func (s *server) setFarLink(ctx context.Context, l *testbed.Lab, req *api.SetLabLinkRequest) (*api.LabLink, error) {
	_, links := s.look(l)
	k, err := findLink(l.Name, links, req.GetLink())
	if a, b, ok := strings.Cut(req.GetLink(), " "); ok && err != nil {
		k, err = l.Link(ctx, a, b)
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	change, err := changeOf(req)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	to, set := stateOf(req, k.State)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	defer s.fars.forget(l.Name)
	var flags []string
	if change.Rate != nil && *change.Rate == 0 {
		flags = append(flags, "--rate=none")
	} else if change.Rate != nil {
		flags = append(flags, "--rate="+change.Rate.String())
	}
	if change.Delay != nil {
		flags = append(flags, "--delay="+change.Delay.String())
	}
	if change.Jitter != nil {
		flags = append(flags, "--jitter="+change.Jitter.String())
	}
	if change.Loss != nil {
		flags = append(flags, "--loss="+change.Loss.String())
	}
	if flags != nil {
		k, err = l.SetLink(ctx, k.A, k.B, "set", flags...)
	}
	if err == nil && set {
		k, err = l.SetLink(ctx, k.A, k.B, string(to))
	}
	if err != nil {
		return nil, api.Errorf(codes.FailedPrecondition, "%w", err)
	}
	return linkOf(k), nil
}
