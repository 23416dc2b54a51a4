package serve

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/machineservice"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/testbed"
	"github.com/weft-sdn/weft/lab/topology"
)

// ApplyLab makes a running lab what a changed file says, or says what differs (api.LabServer).
func (s *server) ApplyLab(ctx context.Context, req *api.ApplyLabRequest) (*api.ApplyLabResponse, error) {
	if !req.GetDryRun() {
		if err := s.o.allow(AllowUp); err != nil {
			return nil, err
		}
	}
	leave, err := s.places.await(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	t, err := parse(req.GetFile(), bounds())
	if err == nil && !req.GetDryRun() {
		t, err = s.made(req.GetFile())
	}
	if err != nil {
		if api.KindOf(err) == codes.PermissionDenied {
			return nil, err
		}
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	name := t.Name
	if req.GetLab() != "" {
		name = req.GetLab()
	}
	if err := s.unchanged(name, req.GetMadeFrom()); err != nil {
		return nil, err
	}
	if err := s.jobs.idle(name); err != nil {
		return nil, err
	}
	text := []byte(req.GetFile())
	far := testbed.Exists(name)
	var d *topology.Difference
	if far {
		d, err = testbed.Apply(ctx, name, "lab.yaml", text, testbed.ApplyOptions{DryRun: true})
	} else {
		d, err = lab.Apply(ctx, "lab.yaml", text, lab.ApplyOptions{Name: name, DryRun: true})
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	resp := &api.ApplyLabResponse{Lab: name}
	for _, i := range d.Added {
		resp.Added = append(resp.Added, i.String())
	}
	for _, i := range d.Deleted {
		resp.Deleted = append(resp.Deleted, i.String())
	}
	for _, e := range d.Changed {
		resp.Changed = append(resp.Changed, e.String())
	}
	if req.GetDryRun() {
		return resp, nil
	}
	var touched []string
	touch := func(i topology.Item) {
		if !slices.Contains(touched, i.Name) {
			touched = append(touched, i.Name)
		}
	}
	for _, i := range slices.Concat(d.Added, d.Deleted) {
		touch(i)
	}
	for _, e := range d.Changed {
		touch(e.Item)
	}
	resp.Job, err = s.jobs.start(s.ctx, machineservice.CallerOf(ctx), "apply", name, touched, func(ctx context.Context, j *job) error {
		if far {
			return s.applyFar(ctx, j, name, text, req.GetMadeFrom())
		}
		_, err := lab.Apply(ctx, "lab.yaml", text, lab.ApplyOptions{Name: name, MadeFrom: req.GetMadeFrom(), Progress: func(step lab.Step) {
			if step.Done {
				j.did(step.Name, step.Do+" "+step.String()+": done")
			} else {
				j.doing(step.Do + " " + step.String())
			}
		}})
		return err
	})
	return resp, err
}

// unchanged returns an error if a lab is not the one any more that a change was
// made from; empty: it was made from whatever is there.
func (s *server) unchanged(name, madeFrom string) error {
	l, err := s.running(name)
	if err != nil {
		return err
	}
	if err := l.CheckRevision(madeFrom); err != nil {
		return api.Errorf(codes.Aborted, "%w", err)
	}
	return nil
}
