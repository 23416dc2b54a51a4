package forwarding

import (
	"context"
	"log/slog"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// engine is the state of forwarding by whole paths: the routes, and what the
// packet path must know about ports. Many goroutines call the stage, one calls
// the event handlers.
type engine struct {
	*portTable

	cfg     Config
	subnets []subnet
	program programmer
	log     *slog.Logger
	now     func() time.Time
	count   counters

	findPath   finder // waits for the answer
	findNow    finder // for the stage: fails with Unavailable instead of waiting
	send       func(*flow.Decision) (*api.ApplyResult, error)
	publish    func(*api.RouteChanged)
	readGroups func(dpid string) (*api.ReadGroupsResponse, error)
	observe    func(dpids []string) ([]string, error) // asks switches, or all, for reports; returns who will

	reached  object.Limits // of the configuration
	deferral deferral
	paths    *pathTable
	replicas replicas
	routes   *routeTable
	held     *holding
	links    *linkView
	hosts    *whereabouts
	adoption *adoption
	outdated outdated
	sharing  *sharing
	sessions *sessions
	tagging  flow.Tagging // of virtual networks

	manyOthers int // the constant, except in tests
}

// execute sends a decision. A switch to which a part of it could not be handed is
// asked later what it has: if it does not connect anew meanwhile, it reports
// nothing by itself.
func (e *engine) execute(send func(*flow.Decision) (*api.ApplyResult, error), d *flow.Decision) error {
	result, err := send(d)
	var missed []flow.DPID
	for _, f := range result.GetFailures() {
		if sw, wrong := flow.ParseDPID(f.Dpid); wrong == nil && f.Transient {
			missed = append(missed, sw)
		}
	}
	if err != nil {
		for i := range d.Ops {
			missed = append(missed, d.Ops[i].Switch)
		}
	}
	if len(missed) == 0 {
		return err
	}
	a, at := e.adoption, e.now().Add(unsure)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sw := range missed {
		a.askSwitchAt(sw, at)
	}
	return err
}

func newEngine(cfg Config) (*engine, error) {
	subnets, err := parseSubnets(cfg.Subnets)
	if err != nil {
		return nil, err
	}
	e := &engine{
		cfg: cfg, subnets: subnets, now: time.Now, program: programmer{idle: uint16(cfg.IdleTimeout.Seconds())},
		paths: newPathTable(), routes: newRouteTable(), held: newHolding(), portTable: &portTable{edges: map[flow.DPID]*edgePorts{}},
		manyOthers: manyOthers, links: newLinkView(), hosts: newWhereabouts(), adoption: newAdoption(), sharing: newSharing(), sessions: newSessions(),
	}
	e.program.table = e.table
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
