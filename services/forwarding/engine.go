package forwarding

import (
	"context"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
)

// engine is the state of forwarding by whole paths: the routes, and what the
// packet path must know about ports. Many goroutines call the stage, one calls
// the event handlers.
type engine struct {
	*portTable
	*platform
	*routing
	*baseline
	*adopter
	*packetPath

	paths    *pathTable
	sessions *sessions
}

// newEngine makes the maps in one order, as newTopology of discovery does.
func newEngine(cfg Config) (*engine, error) {
	subnets, err := parseSubnets(cfg.Subnets)
	if err != nil {
		return nil, err
	}
	paths, routes, held := newPathTable(), newRouteTable(), newHolding()
	links, hosts := newLinkView(), newWhereabouts()
	pf := &platform{cfg: cfg, subnets: subnets, now: time.Now, adoption: newAdoption(), sharing: newSharing()}
	heard := newSessions()
	ports := &portTable{edges: map[flow.DPID]*edgePorts{}}
	rt := &routing{platform: pf, routes: routes, links: links, hosts: hosts,
		program: programmer{idle: uint16(cfg.IdleTimeout.Seconds()), table: ports.table}}
	e := &engine{
		platform: pf, portTable: ports, paths: paths, sessions: heard,
		baseline: &baseline{platform: pf, portTable: ports, manyOthers: manyOthers},
		routing:  rt, adopter: &adopter{routing: rt, portTable: ports},
		packetPath: &packetPath{platform: pf, portTable: ports, routing: rt, held: held},
	}
	e.replicas.set(0, 1)
	return e, nil
}

// housekeep does the periodic work until ctx ends.
func (e *engine) housekeep(ctx context.Context) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	began, retagged := time.Now(), false
	for n := 0; ; n++ {
		now := time.Now()
		e.runPeriodic(now)
		if !retagged && now.Sub(began) >= retagAfter {
			retagged = true
			e.updateTags(e.routes.each)
		}
		if n%4 == 3 {
			e.rescue(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// runPeriodic does the work that is due at the given time.
func (e *engine) runPeriodic(now time.Time) {
	e.ask(now)
	e.adopt(now)
	e.dropFormer(now)
	e.audit(now)
	e.connectFresh(now)
	e.programAgain(now)
	e.recheckRoutes(now)
	e.held.expire(now.UnixNano(), &e.count)
}

func newFlooding(e *engine, settle time.Duration) *flooding {
	return &flooding{
		baseline: e.baseline, links: e.links, settle: settle, rest: func(ctx context.Context, d time.Duration) { _ = backoff.Sleep(ctx, d) }, kick: make(chan struct{}, 1), switches: map[flow.DPID]*floodSwitch{},
		active: true, stop: func() {}, lastShared: &api.Flooding{},
	}
}
