package admission

import (
	"errors"
	"testing"

	"github.com/weft-sdn/weft/flow"
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
	c := &Claims{}
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
		if err := c.Change(&x.mod); errors.Is(err, ErrClaimed) != x.refused || !x.refused && err != nil {
			t.Errorf("%d: %v, refused %v", i, err, x.refused)
		}
	}
	e := claimed(flow.Add, 20, operators).Entry
	c.Seen(&e) // an earlier run's
	if m := claimed(flow.Add, 20, appA); c.Change(&m) == nil {
		t.Error("an app replaces what the operator has added before")
	}
	c.Removed(&e)
	if m := claimed(flow.Add, 20, appA); c.Change(&m) != nil {
		t.Error("what has gone is in the way")
	}
}
