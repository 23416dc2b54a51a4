package forwarding

import (
	"log/slog"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// A platform is what every part of this instance of forwarding uses: what it is
// configured to do, its place among the others, and its calls of other services.
type platform struct {
	cfg     Config
	subnets []subnet
	log     *slog.Logger
	now     func() time.Time
	count   counters
	reached object.Limits // of the configuration
	tagging flow.Tagging  // of virtual networks

	findPath   finder // waits for the answer
	findNow    finder // for the stage: fails with Unavailable instead of waiting
	send       func(*flow.Decision) (*api.ApplyResult, error)
	publish    func(*api.RouteChanged)
	readGroups func(dpid string) (*api.ReadGroupsResponse, error)
	observe    func(dpids []string) ([]string, error) // asks switches, or all, for reports; returns who will

	replicas replicas
	adoption *adoption
	sharing  *sharing
}

// execute sends a decision. A switch to which a part of it could not be handed is
// asked later what it has: if it does not connect anew meanwhile, it reports
// nothing by itself.
func (pf *platform) execute(send func(*flow.Decision) (*api.ApplyResult, error), d *flow.Decision) error {
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
	a, at := pf.adoption, pf.now().Add(unsure)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sw := range missed {
		a.askSwitchAt(sw, at)
	}
	return err
}

// share shares a route that was programmed with the other instances.
func (pf *platform) share(r *route) {
	if !pf.replicas.isAlone() {
		pf.sharing.add(shared{r: r})
	}
}

// shareGone shares the removal of a route with the other instances.
func (pf *platform) shareGone(r *route, at int64) {
	if !pf.replicas.isAlone() {
		pf.sharing.add(shared{r, at})
	}
}

// shareFlooding shares the broadcast tree with the other instances.
func (pf *platform) shareFlooding(m *api.Flooding) {
	if pf.replicas.isAlone() {
		return
	}
	pf.sharing.mu.Lock()
	pf.sharing.flooding = m
	pf.sharing.mu.Unlock()
	pf.sharing.ring()
}
