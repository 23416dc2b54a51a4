package l2vpn

import (
	"context"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A reader reads what the entries and meters of a switch have counted.
type reader interface {
	entries(ctx context.Context, sw flow.DPID, cookie, mask flow.Cookie) ([]*api.FlowEntry, error)
	meters(ctx context.Context, sw flow.DPID, meter uint32) ([]*api.MeterStats, error) // flow.MeterAll: all
}

// The parts of a cookie by which entries are read.
const wholeID flow.Cookie = 1<<32 - 1

// A poller reads what switches have counted for the circuits of a store.
type poller struct {
	b    *store
	read reader
}

// readOne reads what the entries of a circuit have counted.
func (p *poller) readOne(ctx context.Context, name string) {
	p.b.mu.Lock()
	s := p.b.status[name]
	var switches []flow.DPID
	var id uint32
	if s != nil {
		id = s.circuit.Id
		for _, sw := range s.circuit.switches() {
			if p.b.net.Info(sw).GetConnected() {
				switches = append(switches, sw)
			}
		}
	}
	p.b.mu.Unlock()
	p.readAll(ctx, switches, id)
}

// readEach reads what the entries of all circuits have counted.
func (p *poller) readEach(ctx context.Context) {
	p.readAll(ctx, p.attended(), 0)
}

// attended returns the switches that have entries of circuits and are there.
func (p *poller) attended() (list []flow.DPID) {
	b := p.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for sw := range b.at {
		if b.net.Info(sw).GetConnected() {
			list = append(list, sw)
		}
	}
	return list
}

// readAll reads entries and meters of switches, at once: those of the circuit with a
// number, or, of 0, of all.
func (p *poller) readAll(ctx context.Context, switches []flow.DPID, id uint32) {
	mask := flow.OwnerMask
	if id != 0 {
		mask |= wholeID
	}
	var work sync.WaitGroup
	for _, sw := range switches {
		work.Go(func() {
			if flows, err := p.read.entries(ctx, sw, flow.NewCookie(flow.OwnerCircuits, 0, id), mask); err == nil {
				p.b.mu.Lock()
				p.b.counters.count(flows)
				p.b.mu.Unlock()
			}
			p.readMeters(ctx, sw, id)
		})
	}
	work.Wait()
}

// counting is how often the counters of all circuits are read for the metrics.
const counting = 30 * time.Second

// run reads what the entries of all circuits have counted, again and again until ctx
// ends, one switch after the other.
func (p *poller) run(ctx context.Context) {
	tick := time.NewTicker(counting)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, sw := range p.attended() {
			p.readAll(ctx, []flow.DPID{sw}, 0)
		}
	}
}
