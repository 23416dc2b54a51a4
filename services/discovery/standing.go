package discovery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"weft/api"
	"weft/flow"
)

// standing returns the entries that discovery wants on every switch: LLDP goes
// to the controller whatever others write, and foreign BDDP goes nowhere.
func standing(sw flow.DPID) *api.SetStandingRequest {
	lldp := flow.Entry{
		Priority: flow.PriorityMax, Cookie: flow.NewCookie(flow.OwnerDiscovery, 0, 1),
		Match: flow.Match{}.WithEthType(flow.EthTypeLLDP), Apply: []flow.Action{flow.Output(flow.PortController)},
	}
	bddp := flow.Entry{
		Priority: flow.PriorityMax, Cookie: flow.NewCookie(flow.OwnerDiscovery, 0, 2),
		Match: flow.Match{}.WithEthType(ethTypeBDDP),
	}
	return &api.SetStandingRequest{Dpid: sw.String(), Owner: flow.OwnerDiscovery.String(),
		Flows: []*api.FlowEntry{api.NewFlowEntry(sw, &lldp), api.NewFlowEntry(sw, &bddp)}}
}

// A keeper sees that every connected switch gets the standing entries: in the
// background, and again, at growing intervals, until the switch has confirmed.
type keeper struct {
	set       func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error)
	confirmed func(flow.DPID)
	log       *slog.Logger

	mu    sync.Mutex // guards the following
	stops map[flow.DPID]context.CancelFunc
	work  sync.WaitGroup
}

// The times between tries.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 15 * time.Second
)

// begin sees to a switch that has connected.
func (k *keeper) begin(ctx context.Context, sw flow.DPID) {
	ctx, cancel := context.WithCancel(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if stop := k.stops[sw]; stop != nil {
		stop()
	}
	if k.stops == nil {
		k.stops = map[flow.DPID]context.CancelFunc{}
	}
	k.stops[sw] = cancel
	k.work.Go(func() { k.keep(ctx, sw) })
}

// end gives up on a switch that is gone.
func (k *keeper) end(sw flow.DPID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if stop := k.stops[sw]; stop != nil {
		stop()
		delete(k.stops, sw)
	}
}

// wait returns when nothing is going on any more.
func (k *keeper) wait() { k.work.Wait() }

func (k *keeper) keep(ctx context.Context, sw flow.DPID) {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		resp, err := k.set(ctx, standing(sw))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && len(resp.GetFailed()) == 0:
			k.confirmed(sw)
			return
		case err != nil:
			k.log.Warn("LLDP trap not installed", "dpid", sw, "error", err, "retry_in", pause)
		default:
			k.log.Warn("LLDP trap refused", "dpid", sw, "reason", resp.Failed[0].GetReason(), "retry_in", pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
