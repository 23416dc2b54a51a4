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

// baselineFlows returns the baseline flows of discovery: our own LLDP goes to the controller before anything else
// gets it, and foreign LLDP where circuits do not take it; foreign BDDP is dropped. On a hybrid node, its routing
// and its circuits take what is not ours. Whether a switch has circuits makes no difference, so that nothing has
// to be known of them first.
func baselineFlows(sw flow.DPID, hybrid bool) *api.SetStandingRequest {
	toController := []flow.Action{flow.Output(flow.PortController)}
	flows := []flow.Entry{{
		Priority: flow.PriorityProbe, Cookie: flow.NewCookie(flow.OwnerDiscovery, 0, 1),
		Match: flow.Match{}.WithEthType(flow.EthTypeLLDP).WithEthSrcMasked(probeSource, probeSourceMask), Apply: toController,
	}}
	if !hybrid {
		flows = append(flows, flow.Entry{
			Priority: flow.PriorityProbe, Cookie: flow.NewCookie(flow.OwnerDiscovery, 0, 2),
			Match: flow.Match{}.WithEthType(ethTypeBDDP),
		}, flow.Entry{
			Priority: flow.PriorityForeignProbe, Cookie: flow.NewCookie(flow.OwnerDiscovery, 0, 3),
			Match: flow.Match{}.WithEthType(flow.EthTypeLLDP), Apply: toController,
		})
	}
	req := &api.SetStandingRequest{Dpid: sw.String(), Owner: flow.OwnerDiscovery.String()}
	for i := range flows {
		req.Flows = append(req.Flows, api.NewFlowEntry(sw, &flows[i]))
	}
	return req
}

// A baselineSender sends the baseline flows of every connected switch in the
// background. It retries at growing intervals until the switch has confirmed, and
// sends them again when flowrules has restarted, which loses them.
type baselineSender struct {
	setFlows  func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error)
	confirmed func(flow.DPID)
	log       *slog.Logger

	mu      sync.Mutex // guards the following
	jobs    map[flow.DPID]*switchJob
	closed  bool // close was called: start no more goroutines
	running sync.WaitGroup
}

// switchJob is the state of one connected switch.
type switchJob struct {
	hybrid bool
	stop   context.CancelFunc
	again  chan struct{} // capacity one: send again
}

// The pauses between attempts.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 15 * time.Second
)

// startSwitch starts the goroutine of a switch that has connected.
func (k *baselineSender) startSwitch(ctx context.Context, sw flow.DPID, hybrid bool) {
	ctx, cancel := context.WithCancel(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.jobs[sw]; old != nil {
		old.stop()
	}
	if k.jobs == nil {
		k.jobs = map[flow.DPID]*switchJob{}
	}
	j := &switchJob{hybrid: hybrid, stop: cancel, again: make(chan struct{}, 1)}
	k.jobs[sw] = j
	if k.closed {
		cancel()
		return
	}
	k.running.Go(func() { k.runSwitch(ctx, sw, j) })
}

// resend sends the flows of a switch again, if it is connected.
func (k *baselineSender) resend(sw flow.DPID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if j := k.jobs[sw]; j != nil {
		object.Notify(j.again)
	}
}

// stopSwitch ends the goroutine of a switch that has gone.
func (k *baselineSender) stopSwitch(sw flow.DPID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if j := k.jobs[sw]; j != nil {
		j.stop()
		delete(k.jobs, sw)
	}
}

// close waits until all goroutines have ended.
func (k *baselineSender) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.running.Wait()
}

// runSwitch sends the flows of a switch until it has confirmed, and whenever resend
// is called.
func (k *baselineSender) runSwitch(ctx context.Context, sw flow.DPID, j *switchJob) {
	for {
		if !k.sendFlows(ctx, sw, j) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-j.again:
		}
	}
}

// sendFlows sends the flows until the switch has confirmed. It returns false
// if ctx ends before that.
func (k *baselineSender) sendFlows(ctx context.Context, sw flow.DPID, j *switchJob) bool {
	var retry api.Retry
	for {
		resp, err := k.setFlows(ctx, baselineFlows(sw, j.hybrid))
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
