package paths

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

func switchMsg(sw flow.DPID, up bool) *api.SwitchChanged {
	return &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: up}}
}

func linkMsg(a, b flow.Location, removed bool) *api.LinkChanged {
	return &api.LinkChanged{Removed: removed, Link: &api.Link{Src: api.NewLocation(a), Dst: api.NewLocation(b), State: "up", Weight: 10}}
}

// ring tells of three switches in a ring, as the runtime replays it: links
// first, for they were told last.
func ring(h *wefttest.Harness) {
	for d := flow.DPID(3); d >= 1; d-- {
		next := d%3 + 1
		wefttest.PublishAsync(h, api.LinkChangedEvent, linkMsg(at2(d, 1), at2(next, 2), false))
		wefttest.PublishAsync(h, api.LinkChangedEvent, linkMsg(at2(next, 2), at2(d, 1), false))
	}
	time.Sleep(20 * time.Millisecond) // another publisher
	for d := range flow.DPID(3) {
		wefttest.PublishAsync(h, api.SwitchChangedEvent, switchMsg(d+1, true))
	}
	h.Settle()
}

func names(links []*api.Link) string {
	var list []string
	for _, l := range links {
		list = append(list, fmt.Sprintf("%d-%d", l.Src.Flow().Switch, l.Dst.Flow().Switch))
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

// TestRestart: a paths that has started answers and tells when it knows the
// network, and not before; each change is told once; versions grow.
func TestRestart(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		var last uint64
		for run := range 2 {
			h.Start()
			answer := make(chan string, 1)
			go func() {
				resp, err := wefttest.CallContext(t.Context(), h, api.FindPath, &api.FindPathRequest{Src: "1", Dst: "3"})
				answer <- fmt.Sprint(len(resp.GetPaths()), err)
			}()
			ring(h)
			if got := <-answer; got != "1 <nil>" {
				t.Errorf("run %d: asked at once: %s", run, got)
			}
			first := wefttest.Next(h, api.PathsConvergedEvent)
			if got := names(first.Gained); got != "[1-2 1-3 2-1 2-3 3-1 3-2]" || len(first.Lost) != 0 || first.Version <= last {
				t.Errorf("run %d: told first: %v, version %d after %d", run, got, first.Version, last)
			}
			last = first.Version
			// The same facts again, from whoever has restarted.
			ring(h)
			wefttest.None(h, api.PathsConvergedEvent, 30*time.Millisecond)
			// One link goes down: told once, with both directions.
			wefttest.Publish(h, api.LinkChangedEvent, linkMsg(at2(1, 1), at2(2, 2), true))
			wefttest.Publish(h, api.LinkChangedEvent, linkMsg(at2(2, 2), at2(1, 1), true))
			lost := wefttest.Next(h, api.PathsConvergedEvent)
			if got := names(lost.Lost); got != "[1-2 2-1]" || lost.Version != last+1 || !lost.TreeChanged && len(lost.Gained) > 0 {
				t.Errorf("run %d: lost %s, version %d after %d", run, got, lost.Version, last)
			}
			last = lost.Version
			wefttest.None(h, api.PathsConvergedEvent, 30*time.Millisecond)
			tree, err := wefttest.Call(h, api.GetTree, &api.GetTreeRequest{})
			if err != nil || len(tree.Ports) != 4 || tree.Version != last {
				t.Errorf("run %d: %v, %v", run, tree, err)
			}
			if n := h.Metric("convergences_total"); n != 2 {
				t.Errorf("run %d: %v convergences counted", run, n)
			}
			if n := h.Metric("links"); n != 4 {
				t.Errorf("run %d: paths lead over %v links, want 4", run, n)
			}
			h.Restart()
		}
	})
}

// TestNetworkWithoutLinks is answered for, too.
func TestNetworkWithoutLinks(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		wefttest.Publish(h, api.SwitchChangedEvent, switchMsg(1, true))
		if _, err := wefttest.Call(h, api.FindPath, &api.FindPathRequest{Src: "1", Dst: "2"}); api.KindOf(err) != codes.NotFound {
			t.Errorf("%v, want NotFound", err)
		}
		resp, err := wefttest.Call(h, api.FindPath, &api.FindPathRequest{Src: "1", Dst: "1"})
		if err != nil || len(resp.Paths) != 1 {
			t.Errorf("%v, %v", resp, err)
		}
		if e := wefttest.Next(h, api.PathsConvergedEvent); len(e.Gained) != 0 {
			t.Errorf("%v", e)
		}
	})
}

// TestEndsBeforeItKnows: who asks a service that ends before it has received the network is
// told so, and may ask its successor, instead of waiting for as long as he likes.
func TestEndsBeforeItKnows(t *testing.T) {
	over := make(chan struct{})
	c := newConvergence(1, func(*api.PathsConverged) {})
	c.over = over
	answered := make(chan error)
	go func() {
		_, err := c.findPath(context.Background(), &api.FindPathRequest{Src: "1", Dst: "2"})
		answered <- err
	}()
	close(over)
	if err := <-answered; api.KindOf(err) != codes.Unavailable {
		t.Error(err)
	}
}
