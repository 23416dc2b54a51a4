package southbound

import (
	"errors"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// claimed returns a flow-mod at a priority, with a cookie.
func claimed(command flow.Command, priority uint16, c flow.Cookie) flow.Mod {
	return flow.Mod{Command: command, Entry: flow.Entry{Priority: priority, Cookie: c}, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny, CookieMask: ^flow.Cookie(0)}
}

var (
	appA, appB = flow.AppCookie(flow.MarkOf("a"), 1), flow.AppCookie(flow.MarkOf("b"), 1)
	operators  = flow.NewCookie(flow.OwnerOperator, 3, 7)
)

func TestClaims(t *testing.T) {
	c := &claims{}
	for i, x := range []struct {
		mod     flow.Mod
		refused bool
	}{
		{claimed(flow.Add, 10, appA), false},
		{claimed(flow.Add, 10, appB), true},
		{claimed(flow.Add, 10, flow.AppCookie(flow.MarkOf("a"), 2)), false},
		{claimed(flow.DeleteStrict, 10, appB), false}, // the cookie has the switch keep it
		{claimed(flow.Add, 10, appB), true},
		{claimed(flow.DeleteStrict, 10, appA), false},
		{claimed(flow.Add, 10, appB), false},
		{claimed(flow.Add, 10, operators), false}, // who may replace all
		{claimed(flow.Add, 10, appB), true},
		{claimed(flow.Add, 11, appB), false},
		{claimed(flow.DeleteStrict, 10, flow.NewCookie(flow.OwnerOperator, 4, 8)), false},
		{claimed(flow.Add, 10, appA), false},
		{claimed(flow.Add, 12, flow.NewCookie(flow.OwnerRoutes, 1, 1)), false},
		{claimed(flow.Add, 12, 77), false}, // nobody's of ours
	} {
		if err := c.change(&x.mod); errors.Is(err, errClaimed) != x.refused || !x.refused && err != nil {
			t.Errorf("%d: %v, refused %v", i, err, x.refused)
		}
	}
	e := claimed(flow.Add, 20, operators).Entry
	c.seen(&e) // an earlier run's
	if m := claimed(flow.Add, 20, appA); c.change(&m) == nil {
		t.Error("an app replaces what the operator has added before")
	}
	c.removed(&e)
	if m := claimed(flow.Add, 20, appA); c.change(&m) != nil {
		t.Error("what has gone is in the way")
	}
}

// TestAppsReplaceTheirOwn: an app's entry does not get to a switch that has the
// operator's or another app's in its place, which it may have had before it
// connected.
func TestAppsReplaceTheirOwn(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		device := w.device(oftest.Config{DPID: 1})
		add := func(m flow.Mod) *api.ApplyResult {
			d := &flow.Decision{}
			d.Flow(1, m)
			return w.apply(d)
		}
		owners := func() (list []flow.Cookie) {
			for _, f := range device.Flows() {
				list = append(list, f.Cookie)
			}
			return list
		}
		if r := add(claimed(flow.Add, 10, operators)); len(r.Failures) > 0 {
			t.Fatal(r)
		}
		if r := add(claimed(flow.Add, 10, appA)); len(r.Failures) != 1 || r.Failures[0].Transient {
			t.Errorf("in the operator's place: %v", r)
		}
		if r := add(claimed(flow.DeleteStrict, 10, appA)); len(r.Failures) > 0 {
			t.Error(r)
		}
		if list := owners(); len(list) != 1 || list[0] != operators {
			t.Errorf("entries of %x, want the operator's", list)
		}
		if r := add(claimed(flow.Add, 11, appA)); len(r.Failures) > 0 {
			t.Error(r)
		}
		if r := add(claimed(flow.Add, 11, appB)); len(r.Failures) != 1 {
			t.Errorf("in another app's place: %v", r)
		}
	})
}
