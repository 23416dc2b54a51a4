package forwarding

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// What another process has computed is asked for once, until a link changes.
func TestPathTable(t *testing.T) {
	var table pathTable
	asked, during := 0, func() {}
	far := table.keeping(func(*api.FindPathRequest) (*api.FindPathResponse, error) {
		asked++
		during()
		return &api.FindPathResponse{Paths: []*api.Path{{}}}, nil
	})
	near := table.local(func(*api.FindPathRequest) (*api.FindPathResponse, error) {
		return nil, api.Errorf(codes.Unavailable, "it is not served here")
	})
	req := func(hash uint64) *api.FindPathRequest { return &api.FindPathRequest{Src: "1", Dst: "2", Hash: hash} }
	known := func(hash uint64) bool { _, err := near(req(hash)); return err == nil }
	if known(1) {
		t.Error("a path is known that nobody has computed")
	}
	if _, err := far(req(1)); err != nil || !known(1) || known(2) {
		t.Errorf("after it was asked for: %v, known %v, another one %v", err, known(1), known(2))
	}
	for key, kept := range table.paths {
		kept.at = kept.at.Add(-pathsFor)
		table.paths[key] = kept
	}
	if known(1) {
		t.Error("a path is known for longer than it may be kept")
	}
	_, _ = far(req(1))
	table.forget()
	if known(1) {
		t.Error("a path is known that a link may have gone from")
	}
	during = table.forget // a link changes while it is computed
	if _, err := far(req(1)); err != nil || known(1) {
		t.Errorf("computed before a link changed, and kept: %v", err)
	}
}

// A pair whose route is programmed again needs no other process.
func TestPathTableServesTheStage(t *testing.T) {
	f, a, b := newFarPaths(t)
	f.findNow, f.deferral.find = f.paths.local(f.findNow), f.paths.keeping(f.deferral.find)
	close(f.answer)
	punt(f.engine, a, &b, numbered(a, b, 0))
	f.deferral.drain(func() {})
	f.routes = newRouteTable() // long ago
	if _, d, _ := punt(f.engine, a, &b, numbered(a, b, 1)); len(d.Flows) == 0 || len(d.Outs) != 1 {
		t.Errorf("programmed again: %d entries and %d packet-outs at once", len(d.Flows), len(d.Outs))
	}
	f.engine.linkChanged(&api.LinkChanged{Link: &api.Link{Src: &api.Location{}, Dst: &api.Location{}}})
	f.routes = newRouteTable()
	if _, d, _ := punt(f.engine, a, &b, numbered(a, b, 2)); !d.Empty() {
		t.Errorf("a link has changed: %d operations before the path is asked for", len(d.Ops))
	}
}
