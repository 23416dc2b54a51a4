package forwarding

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// What another process has computed is asked for once; again, but beside, when
// links have changed or a while has passed; and not used over a link that is
// lost.
func TestPathTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newPathTable()
		asked, during := 0, func() {}
		far := table.keeping(func(*api.FindPathRequest) (*api.FindPathResponse, error) {
			asked++
			during()
			return &api.FindPathResponse{Paths: []*api.Path{{Hops: []*api.Hop{{Dpid: "0000000000000001", OutPort: 7}}}}}, nil
		})
		near := table.local(func(*api.FindPathRequest) (*api.FindPathResponse, error) {
			return nil, api.Errorf(codes.Unavailable, "it is not served here")
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go table.refresh(ctx, far)
		known := func(hash uint64) bool {
			_, err := near(&api.FindPathRequest{Src: "1", Dst: "2", Hash: hash})
			synctest.Wait() // for what is asked beside
			return err == nil
		}
		ask := func() { _, _ = far(&api.FindPathRequest{Src: "1", Dst: "2", Hash: 1}) }
		expect := func(when string, is bool, times int) {
			t.Helper()
			if got := known(1); got != is || asked != times {
				t.Errorf("%s: known %v, asked for %d times; want %v, %d", when, got, asked, is, times)
			}
		}
		expect("before it is asked for", false, 0)
		ask()
		expect("then", true, 1)
		if known(2) {
			t.Error("another one is known")
		}
		table.invalidate(nil)
		expect("a link has come: used, and asked for again", true, 2)
		expect("which is the end of it", true, 2)
		table.invalidate(map[flow.Location]bool{{Switch: 1, Port: 8}: true})
		expect("another link is lost", true, 3)
		table.invalidate(map[flow.Location]bool{{Switch: 1, Port: 7}: true})
		expect("its link is lost", false, 3)
		during = func() { table.invalidate(nil) }
		ask()
		expect("a link has changed while it was computed", false, 4)
		during = func() {}
		ask()
		time.Sleep(pathsFresh + time.Second)
		expect("a while has passed", true, 6)
		time.Sleep(pathsFor + time.Second)
		expect("a long while has passed", false, 6)
	})
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
}
