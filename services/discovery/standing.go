package discovery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// standing returns the baseline flows of discovery: LLDP goes to the controller
// whatever other entries say, and foreign BDDP is dropped. On a hybrid node only
// our own LLDP does: customers' passes their circuits, and the node's its routing.
func standing(sw flow.DPID, hybrid bool) *api.SetStandingRequest {
	lldp := flow.Entry{
		Priority: flow.PriorityProbe, Cookie: flow.NewCookie(flow.OwnerDiscovery, 0, 1),
		Match: flow.Match{}.WithEthType(flow.EthTypeLLDP), Apply: []flow.Action{flow.Output(flow.PortController)},
	}
	bddp := flow.Entry{
		Priority: flow.PriorityProbe, Cookie: flow.NewCookie(flow.OwnerDiscovery, 0, 2),
		Match: flow.Match{}.WithEthType(ethTypeBDDP),
	}
	req := &api.SetStandingRequest{Dpid: sw.String(), Owner: flow.OwnerDiscovery.String()}
	if hybrid {
		lldp.Match = lldp.Match.WithEthSrcMasked(probeSource, probeSourceMask)
		req.Flows = []*api.FlowEntry{api.NewFlowEntry(sw, &lldp)}
	} else {
		req.Flows = []*api.FlowEntry{api.NewFlowEntry(sw, &lldp), api.NewFlowEntry(sw, &bddp)}
	}
	return req
}

// A keeper declares the baseline flows of every connected switch: in the
// background, again at growing intervals until the switch has confirmed, and
// again when flowrules has restarted, because it has forgotten them then.
type keeper struct {
	set       func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error)
	confirmed func(flow.DPID)
	log       *slog.Logger

	mu   sync.Mutex // guards the following
	jobs map[flow.DPID]*keeping
	over bool // wait was called: nothing begins any more
	work sync.WaitGroup
}

// keeping is a keeper's work for one connected switch.
type keeping struct {
	hybrid bool
	stop   context.CancelFunc
	again  chan struct{} // capacity one: declare anew
}

// The times between tries.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 15 * time.Second
)

// begin starts the work for a switch that has connected.
func (k *keeper) begin(ctx context.Context, sw flow.DPID, hybrid bool) {
	ctx, cancel := context.WithCancel(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.jobs[sw]; old != nil {
		old.stop()
	}
	if k.jobs == nil {
		k.jobs = map[flow.DPID]*keeping{}
	}
	j := &keeping{hybrid: hybrid, stop: cancel, again: make(chan struct{}, 1)}
	k.jobs[sw] = j
	if k.over {
		cancel()
		return
	}
	k.work.Go(func() { k.keep(ctx, sw, j) })
}

// again declares the flows of a switch anew, if it is connected.
func (k *keeper) again(sw flow.DPID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if j := k.jobs[sw]; j != nil {
		object.Notify(j.again)
	}
}

// end ends the work for a switch that is gone.
func (k *keeper) end(sw flow.DPID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if j := k.jobs[sw]; j != nil {
		j.stop()
		delete(k.jobs, sw)
	}
}

// wait waits until all work has ended.
func (k *keeper) wait() {
	k.mu.Lock()
	k.over = true
	k.mu.Unlock()
	k.work.Wait()
}

// keep declares the flows until the switch has confirmed, and whenever again is
// called.
func (k *keeper) keep(ctx context.Context, sw flow.DPID, j *keeping) {
	for {
		if !k.declare(ctx, sw, j) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-j.again:
		}
	}
}

// declare declares the flows until the switch has confirmed. It returns false
// if ctx ends before that.
func (k *keeper) declare(ctx context.Context, sw flow.DPID, j *keeping) bool {
	var retry api.Retry
	for {
		resp, err := k.set(ctx, standing(sw, j.hybrid))
		if err == nil {
			err = resp.Confirmed(1)
		}
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			k.confirmed(sw)
			return true
		}
		pause, news := retry.After(err, firstRetry, lastRetry)
		if news {
			k.log.Warn("LLDP trap not installed; tried again, ever more rarely", "dpid", sw, "error", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-j.again:
			retry.Soon()
		case <-time.After(pause):
		}
	}
}
