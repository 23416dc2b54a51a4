package flowrules

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// presence is what is known of a switch and its connection. The lock of the worker
// guards it, as all of a ledger.
type presence struct {
	sw      flow.DPID
	version string // OpenFlow version of the session

	session   uint64 // number of the last connection; 0: none yet
	address   string // of the session, and when it began, as the southbound reports it
	began     string
	connected bool
	forgotten bool      // the switch is remembered by nobody else
	since     time.Time // of the connection, or of its loss
	viewed    bool      // the entries have been read in this session, or are presumed unknown
	unknown   bool      // the switch does not report its entries
}

// idledAway reports whether an entry that the switch had, and has no longer, may
// have ended by its idle timeout while the controller was away; it is then not
// restored (CVE-2018-1078).
func (p *presence) idledAway(r *rule, now time.Time) bool {
	idle := time.Duration(r.idle) * time.Second
	if idle == 0 || !r.delivered {
		return false
	}
	alone := r.added
	if p.since.After(alone) {
		alone = p.since
	}
	return now.Sub(alone) >= idle
}

// leadWait is how long after a read of the switch an entry that leads to another
// table waits for that table's miss entry: without it packets would end there.
const leadWait = 3 * time.Second

// waitsForMiss returns the time until which an entry must wait because it leads to
// a table without a miss entry, or zero if it need not wait.
func (p *presence) waitsForMiss(r *rule, without *[256]bool, now time.Time) time.Time {
	end := p.since.Add(leadWait)
	if to := r.next; to == 0 || !without[to] || r.entry().TableMiss() || !now.Before(end) {
		return time.Time{}
	}
	return end
}

// wantedFlow returns the API's view of a rule of the ledger.
func (p *presence) wantedFlow(r *rule) *api.WantedFlow {
	f := api.NewFlowEntry(p.sw, r.entry())
	if r.app != "" {
		f.Owner = api.AppOwner(r.app)
	}
	return &api.WantedFlow{Flow: f, State: r.state.String(), Reason: r.reason, Refused: r.byItself()}
}

func (p *presence) objectMod(d *flow.Decision, k objectKey, b *body, c flow.Command) {
	if k.kind == meterObject {
		d.Meter(p.sw, flow.MeterMod{Command: c, Meter: b.meter})
		return
	}
	d.Group(p.sw, flow.GroupMod{Command: c, Group: b.group})
}

// wantedObject returns the API's view of a group or meter.
func (p *presence) wantedObject(w *resource) *api.WantedFlow {
	f := &api.WantedFlow{
		Flow:  &api.FlowEntry{Dpid: p.sw.String(), Owner: w.key.owner().String()},
		State: w.state.String(), Reason: w.key.String() + ": " + w.reason, Refused: w.byItself(),
	}
	if w.key.kind == meterObject {
		f.Meter = w.key.id
	} else {
		f.Group = w.key.id
	}
	return f
}

// stepFailures returns the failures of a step by the number of the operation, and the
// failures of groups and meters among them. err is the error of the whole call.
func (p *presence) stepFailures(n int, res *api.ApplyResult, err error) (map[int]failure, map[int]objectFailure) {
	failures, said := map[int]failure{}, map[int]objectFailure{}
	if err != nil {
		for i := range n {
			failures[i] = failure{failedLate, err.Error()}
		}
		return failures, said
	}
	for _, f := range res.GetFailures() {
		i := int(f.GetOp())
		kind := kindOf(p.version, f.GetTransient(), f.GetType(), f.GetCode())
		if old, twice := failures[i]; !twice || old.kind == failedLate {
			failures[i] = failure{kind, f.GetText()}
			said[i] = objectFailureOf(f.GetType(), f.GetCode())
		}
	}
	return failures, said
}
