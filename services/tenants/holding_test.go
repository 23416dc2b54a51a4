package tenants

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/wefttest"
)

// TestReportedFirst: a switch that connects is held until flowrules has reported its
// entries, and not at all if that report has come before the southbound's event. The
// report of an earlier session does not count.
func TestReportedFirst(t *testing.T) {
	b := newStore(DefaultConfig(), nil, nil, nil)
	now := time.Unix(1000, 0)
	var acted []bool // whether connected, of the events to act on
	bring := wefttest.Network(reads, func(c nib.Change) {
		acted = nil
		for _, e := range b.networkChanged(now, c).switches {
			acted = append(acted, e.Switch.Connected)
		}
	})
	connect := func(since string) {
		bring(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw1, Connected: true, Since: since, Address: "a"}})
	}
	leave := func() { bring(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw1}}) }
	report := func(since string) *api.SwitchChanged {
		return b.observed(now, &api.FlowsObserved{Dpid: sw1, Owner: "tenants", Since: since, Address: "a"})
	}

	if connect("1"); len(acted) > 0 {
		t.Errorf("before the report of a switch: %v", acted)
	}
	if e := report("1"); !e.GetSwitch().GetConnected() {
		t.Errorf("the report releases %v", e)
	}
	leave()
	if connect("2"); len(acted) != 1 || acted[0] {
		t.Errorf("with the report of an earlier session only: %v", acted)
	}
	report("2")
	leave()
	if e := report("3"); e != nil {
		t.Errorf("a report before the switch's event releases %v", e)
	}
	if connect("3"); len(acted) != 2 || acted[0] || !acted[1] {
		t.Errorf("after the report of a switch: %v", acted)
	}
	if len(b.holding) > 0 {
		t.Errorf("held: %v", b.holding)
	}
}
