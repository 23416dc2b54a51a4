package wefttest_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bus/bustest"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

func TestStore(t *testing.T) {
	bustest.Test(t, func(t *testing.T) bustest.Store { return wefttest.NewStore() })
}

// limits is the configuration of the service under test.
type limits struct {
	Hosts int `yaml:"hosts"`
}

func (l *limits) Validate() error {
	if l.Hosts < 1 {
		return errors.New("hosts 0: want 1 or more")
	}
	return nil
}

// attachments is a service that uses all there is: it counts ports, keeps the
// count, looks switches up, and is a stage.
var attachments = weft.Spec{
	Name:       "hosts",
	Serves:     weft.Methods(api.FindHost),
	Calls:      weft.Methods(api.ListSwitches),
	Subscribes: weft.Subjects(api.PortChangedEvent),
	Publishes:  weft.Subjects(api.HostChangedEvent),
	Buckets:    []string{"ports"},
	Stage:      true,
	Config:     &limits{Hosts: 3},
	Run: func(ctx context.Context, env *weft.Env) error {
		ports, err := weft.State(env, "ports")
		if err != nil {
			return err
		}
		refused := env.Metric.Counter("refused", "Hosts refused.", "reason", "limit")
		weft.On(env, api.PortChangedEvent, func(ctx context.Context, e *api.PortChanged) {
			value, revision, err := ports.Get(ctx, "count")
			if err != nil {
				env.Log.Error("read", "err", err)
				return
			}
			if _, err := ports.Update(ctx, "count", append(value, '+'), revision); err != nil {
				env.Log.Error("write", "err", err)
			}
			weft.Publish(env, api.HostChangedEvent, &api.HostChanged{Change: strconv.Itoa(len(value) + 1)})
		})
		weft.Handle(env, api.FindHost, func(ctx context.Context, req *api.FindHostRequest) (*api.Host, error) {
			list, err := weft.Call(ctx, env, api.ListSwitches, &api.ListSwitchesRequest{})
			if err != nil {
				return nil, err
			}
			if len(list.GetSwitches()) > env.Config.(*limits).Hosts {
				refused.Add(1)
				return nil, api.Errorf(codes.ResourceExhausted, "too many")
			}
			return &api.Host{Moves: uint32(len(list.GetSwitches()))}, nil
		})
		weft.Stage(env, func(sw flow.DPID) weft.StageFunc {
			var seen flow.Port
			return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
				seen++
				d.PacketOut(sw, flow.PacketOut{InPort: seen})
				return flow.Done
			}
		})
		return weft.Serve(ctx, env)
	},
}

func switches(n int) func(context.Context, *api.ListSwitchesRequest) (*api.ListSwitchesResponse, error) {
	return func(context.Context, *api.ListSwitchesRequest) (*api.ListSwitchesResponse, error) {
		return &api.ListSwitchesResponse{Switches: make([]*api.Switch, n)}, nil
	}
}

func TestHarness(t *testing.T) {
	modes := map[wefttest.Mode]bool{}
	wefttest.Run(t, attachments, func(t *testing.T, h *wefttest.Harness) {
		modes[h.Mode] = true
		if _, err := wefttest.Call(h, api.FindHost, &api.FindHostRequest{}); api.KindOf(err) != codes.Unimplemented {
			t.Errorf("without a fake: %v, want Unimplemented", err)
		}
		wefttest.Fake(h, api.ListSwitches, switches(3))
		if host, err := wefttest.Call(h, api.FindHost, &api.FindHostRequest{}); err != nil || host.GetMoves() != 3 {
			t.Errorf("got %v, %v, want 3 moves", host, err)
		}
		wefttest.Fake(h, api.ListSwitches, switches(4))
		if _, err := wefttest.Call(h, api.FindHost, &api.FindHostRequest{}); api.KindOf(err) != codes.ResourceExhausted {
			t.Errorf("got %v, want ResourceExhausted", err)
		}
		if n := h.Metric("refused", "reason", "limit"); n != 1 {
			t.Errorf("refused %v, want 1", n)
		}

		wefttest.Publish(h, api.PortChangedEvent, &api.PortChanged{})
		if value, _, err := h.Bucket("ports").Get(t.Context(), "count"); string(value) != "+" || err != nil {
			t.Errorf("bucket holds %q, %v after Publish, want +", value, err)
		}
		if e := wefttest.Next(h, api.HostChangedEvent); e.GetChange() != "1" {
			t.Errorf("got %v, want 1", e)
		}
		wefttest.None(h, api.HostChangedEvent, time.Millisecond)

		h.Restart()
		for range 3 {
			wefttest.Publish(h, api.PortChangedEvent, &api.PortChanged{})
		}
		if e := wefttest.Await(h, api.HostChangedEvent, func(e *api.HostChanged) bool { return e.GetChange() == "3" }); e == nil {
			t.Error("no third event: the bucket has not survived the restart")
		}
		if list := wefttest.Taken(h, api.HostChangedEvent); len(list) != 1 || list[0].GetChange() != "4" {
			t.Errorf("left are %v, want 4", list)
		}

		for want := range flow.Port(2) {
			v, d := h.Packet(7, 1, make([]byte, 60))
			if v != flow.Done || len(d.Outs) != 1 || d.Outs[0].InPort != want+1 || d.Ops[0].Switch != 7 {
				t.Errorf("packet %d: %v, %+v", want, v, d)
			}
		}
		h.Reconnect(7)
		if _, d := h.Packet(7, 1, make([]byte, 60)); d.Outs[0].InPort != 1 {
			t.Errorf("first packet after Reconnect is number %d for the stage", d.Outs[0].InPort)
		}
	})
	if len(modes) != 3 {
		t.Errorf("ran in modes %v, want all 3", modes)
	}
}

func TestConfigure(t *testing.T) {
	wefttest.Run(t, attachments, func(t *testing.T, h *wefttest.Harness) {
		h.Configure("hosts: 1")
		wefttest.Fake(h, api.ListSwitches, switches(2))
		if _, err := wefttest.Call(h, api.FindHost, &api.FindHostRequest{}); api.KindOf(err) != codes.ResourceExhausted {
			t.Errorf("got %v, want ResourceExhausted", err)
		}
	})
	wefttest.Run(t, attachments, func(t *testing.T, h *wefttest.Harness) {
		h.Configure("hosts: 0")
		if err := h.StartError(); err == nil || err.Error() != "Configure:1: service hosts: hosts 0: want 1 or more" {
			t.Errorf("got %v", err)
		}
	})
}

// TestPipelineOwner runs a service that owns the pipeline, with the test as
// its stage.
func TestPipelineOwner(t *testing.T) {
	owner := weft.Spec{
		Name: "southbound", Pipeline: true, Serves: weft.Methods(api.Send),
		Run: func(ctx context.Context, env *weft.Env) error {
			weft.Handle(env, api.Send, func(context.Context, *flow.Decision) (*api.ApplyResult, error) {
				var d flow.Decision
				v := weft.OpenPipeline(env, 1, nil).Packet(&flow.PacketIn{}, &d)
				return nil, api.Errorf(codes.Code(100+v), "%d", len(d.Ops))
			})
			return weft.Serve(ctx, env)
		},
	}
	wefttest.Run(t, owner, func(t *testing.T, h *wefttest.Harness) {
		h.Stage(func(_ *flow.PacketIn, d *flow.Decision) flow.Verdict { d.Fence(); return flow.Drop })
		if _, err := wefttest.Call(h, api.Send, &flow.Decision{}); api.KindOf(err) != codes.Code(100+flow.Drop) || err.Error() != "1" {
			t.Errorf("got %v of kind %v", err, api.KindOf(err))
		}
	})
}
