package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/internal/shares"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/testbed"
	"github.com/weft-sdn/weft/lab/topology"
)

const (
	maxJobs    = 32 // that are remembered
	maxRunning = 4
)

// Where a step of a job is.
const (
	stepWaiting = "waiting"
	stepWorking = "working"
	stepDone    = "done"
	stepFailed  = "failed"
)

// jobs are what the service does for longer than a request.
type jobs struct {
	places *shares.Places
	wg     sync.WaitGroup

	mu   sync.Mutex // guards what follows
	last int
	all  []*job // the oldest first
}

// job is one of them.
type job struct {
	begun time.Time

	mu   sync.Mutex // guards what follows
	is   *api.LabJob
	step map[string]*api.LabStep // by the node's name
	end  time.Time
}

// start begins a job about a lab and its nodes, unless one about it is under way.
func (j *jobs) start(ctx context.Context, caller machineservice.Caller, kind, name string, nodes []string, do func(context.Context, *job) error) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.busy(name); err != nil {
		return "", err
	}
	place, err := j.places.TryAcquire(caller.Client(), nil)
	if err != nil {
		return "", fullError(err)
	}
	j.last++
	n := &job{begun: time.Now(), step: map[string]*api.LabStep{}}
	n.is = &api.LabJob{Job: fmt.Sprintf("%d", j.last), Kind: kind, Lab: name, Caller: caller.Name, Started: stamp(n.begun)}
	for _, node := range nodes {
		s := &api.LabStep{Node: node, State: stepWaiting}
		n.step[node], n.is.Steps = s, append(n.is.Steps, s)
	}
	j.all = append(j.all, n)
	if over := len(j.all) - maxJobs; over > 0 {
		j.all = slices.DeleteFunc(j.all, func(o *job) bool {
			old := over > 0 && o.snapshot(false).GetDone()
			if old {
				over--
			}
			return old
		})
	}
	j.wg.Go(func() {
		err := do(ctx, n)
		place.Release() // before it is known to be done, so that another one may follow
		n.finish(err)
	})
	return n.is.Job, nil
}

// idle returns an error if a job about a lab is under way.
func (j *jobs) idle(name string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.busy(name)
}

func (j *jobs) busy(name string) error {
	for _, o := range j.all {
		if is := o.snapshot(false); is.GetLab() == name && !is.GetDone() {
			return api.Errorf(codes.FailedPrecondition, "job %s (%s of lab %s) is under way: wait until it is done", is.GetJob(), is.GetKind(), name)
		}
	}
	return nil
}

// snapshot returns how far the job is.
func (j *job) snapshot(steps bool) *api.LabJob {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.is.Steps
	if !steps {
		j.is.Steps = nil
	}
	is := proto.CloneOf(j.is)
	j.is.Steps = was
	end := j.end
	if end.IsZero() {
		end = time.Now()
	}
	is.Seconds = end.Sub(j.begun).Seconds()
	return is
}

// doing says what the job does now.
func (j *job) doing(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.is.Doing = what
	for _, s := range j.is.Steps {
		if s.State == stepWaiting {
			s.State = stepWorking
		}
	}
}

// did says what has been done to a node.
func (j *job) did(node, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.step[node]; s != nil {
		s.State, s.Text = stepDone, what
	}
}

func (j *job) finish(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.is.Done, j.is.Doing, j.end = true, "", time.Now()
	if err != nil {
		j.is.Error = err.Error()
	}
	for _, s := range j.is.Steps {
		switch {
		case err == nil:
			s.State = stepDone
		case s.State != stepDone:
			s.State = stepFailed
		}
	}
}

// GetLabJob says how far a job is (api.LabServer).
func (s *server) GetLabJob(_ context.Context, req *api.GetLabJobRequest) (*api.LabJob, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	for _, j := range s.jobs.all {
		if j.is.Job == req.GetJob() { // which never changes
			return j.snapshot(true), nil
		}
	}
	return nil, api.Errorf(codes.NotFound, "there is no job %q: it is long ago, or the service has started anew", req.GetJob())
}

// ListLabJobs lists the jobs that are remembered (api.LabServer).
func (s *server) ListLabJobs(context.Context, *api.ListLabJobsRequest) (*api.ListLabJobsResponse, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	resp := &api.ListLabJobsResponse{}
	for _, j := range slices.Backward(s.jobs.all) {
		resp.Jobs = append(resp.Jobs, j.snapshot(false))
	}
	return resp, nil
}

// UpLab begins to bring a lab up (api.LabServer).
func (s *server) UpLab(ctx context.Context, req *api.UpLabRequest) (*api.UpLabResponse, error) {
	if err := s.o.allow(AllowUp); err != nil {
		return nil, err
	}
	leave, err := s.places.await(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	t, err := s.made(req.GetFile())
	if err != nil {
		return nil, err
	}
	as := t.Name
	if req.GetName() != "" {
		as = req.GetName()
	}
	err = topology.CheckName(as)
	for _, c := range req.GetControllers() {
		err = errors.Join(err, topology.CheckController(c))
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if lab.Exists(as) || testbed.Exists(as) {
		return nil, api.Errorf(codes.AlreadyExists, "lab %s is up already: take it down, apply the file to it, or give this one another name", as)
	}
	if req.GetMachines() != "" {
		t.Name = as
		return s.upFar(ctx, req, t)
	}
	id, err := s.jobs.start(s.ctx, machineservice.CallerOf(ctx), "up", as, nodesOf(t), func(ctx context.Context, j *job) error {
		l, err := lab.Up(ctx, t, lab.Options{
			Name: req.GetName(), Controllers: req.GetControllers(),
			KeeperCommand: []string{s.o.Program, "lab", "keeper"}, Weft: s.o.Program,
			Progress: j.doing, Node: j.did,
		})
		if err != nil {
			return err
		}
		if as != t.Name || len(req.GetControllers()) > 0 {
			return nil // the text says something else
		}
		return l.KeepText([]byte(req.GetFile()))
	})
	if err != nil {
		return nil, err
	}
	return &api.UpLabResponse{Job: id, Lab: as}, nil
}

func nodesOf(t *topology.Topology) (names []string) {
	for _, s := range t.Switches {
		names = append(names, s.Name)
	}
	for _, h := range t.Hosts {
		names = append(names, h.Name)
	}
	return names
}
