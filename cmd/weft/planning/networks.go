package planning

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab/topology"
)

// The bounds of files of other tools that clients send.
const clientFile = 2 << 20 // octets

func clientBounds() topology.Bounds {
	return topology.Bounds{Items: 200_000, Nodes: 10_000, Links: 20_000}
}

// ImportLab returns the lab file of a file of another tool, one at a time.
func (p *Planner) ImportLab(_ context.Context, r *api.ImportLabRequest) (*api.ImportLabResponse, error) {
	if n := len(r.GetFile()); n > clientFile {
		return nil, api.Errorf(codes.InvalidArgument, "the file has %d octets: want at most %d", n, clientFile)
	}
	var list []string
	for what, in := range r.GetAnswers() {
		list = append(list, what+"="+in)
	}
	answers, err := topology.ParseAnswers(list)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "answers: %w", err)
	}
	if !p.importing.TryLock() {
		return nil, api.Errorf(codes.ResourceExhausted, "another file is being read; ask again in a moment")
	}
	defer p.importing.Unlock()
	lab, remarks, err := topology.Import(r.GetName(), r.GetFile(), topology.ReadOptions{Bounds: clientBounds(), Answers: answers})
	var q *topology.Questions
	if errors.As(err, &q) {
		m := &api.ImportLabResponse{}
		for _, one := range q.List {
			m.Questions = append(m.Questions, &api.ImportQuestion{Key: one.Key(), Kind: one.Kind, Nodes: one.Nodes, Why: one.Why, Line: uint32(one.Line)})
		}
		return m, nil
	}
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	return &api.ImportLabResponse{Lab: lab, Remarks: remarks}, nil
}
