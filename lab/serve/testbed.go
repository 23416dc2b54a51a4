package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/shares"
	"github.com/weft-sdn/weft/lab/testbed"
	"github.com/weft-sdn/weft/lab/topology"
)

// machines reads a resource file of a request.
func machines(text string) (*testbed.Machines, error) {
	if len(text) > testbed.MaxText {
		return nil, topology.Problems{{What: fmt.Sprintf("the resource file has %d octets", len(text)), Allowed: fmt.Sprintf("at most %d", testbed.MaxText)}}
	}
	return testbed.Parse("", []byte(text))
}

// mapBounds bounds what is in a lab file that a client has mapped on machines, whose
// time grows faster than the file; administrators know what they ask for.
func mapBounds(c shares.Client) topology.Bounds {
	b := bounds()
	if c.Rank < shares.Administrator {
		b.Nodes, b.Links = 300, 1000
	}
	return b
}

// MapLabTestbed says on which machine each node of a lab would run (api.LabServer).
func (s *server) MapLabTestbed(ctx context.Context, req *api.MapLabTestbedRequest) (*api.MapLabTestbedResponse, error) {
	leave, err := s.places.await(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	resp := &api.MapLabTestbedResponse{}
	t, err := parse(req.GetFile(), mapBounds(clientIn(ctx)))
	resp.Problems, err = problemsOf(resp.Problems, "file", err)
	if err != nil {
		return nil, err
	}
	m, err := machines(req.GetMachines())
	resp.Problems, err = problemsOf(resp.Problems, "machines", err)
	if err != nil || len(resp.Problems) > 0 {
		return resp, err
	}
	is, err := testbed.Map(t, m)
	resp.Problems, err = problemsOf(resp.Problems, "", err)
	if err != nil || len(resp.Problems) > 0 {
		return resp, err
	}
	for _, p := range is.Nodes {
		resp.Mapping = append(resp.Mapping, &api.LabMapping{Node: p.Node, Machine: p.Machine, ByHand: p.ByHand})
	}
	for _, k := range is.Tunnels {
		resp.Tunnels = append(resp.Tunnels, &api.LabTunnel{Link: k.Link, Vni: k.VNI, Machines: k.Machines[:]})
	}
	for _, l := range is.Loads {
		resp.Loads = append(resp.Loads, &api.LabLoad{Machine: l.Machine, Nodes: uint32(l.Nodes), LinksCut: uint32(l.Cut)})
	}
	return resp, nil
}

// problemsOf adds the problems that an error is to a list; any other error is returned.
func problemsOf(all []*api.LabTestbedProblem, of string, err error) ([]*api.LabTestbedProblem, error) {
	problems := topology.Problems{}
	if !errors.As(err, &problems) {
		return all, err
	}
	for _, p := range problems {
		if len(all) < maxProblems {
			all = append(all, &api.LabTestbedProblem{Of: of, Line: uint32(p.Line), Text: p.What, Allowed: p.Allowed})
		}
	}
	return all, nil
}

// maxProblems bounds those of both files.
const maxProblems = 100
