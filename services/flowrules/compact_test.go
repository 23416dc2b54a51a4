package flowrules

import (
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-sdn/weft/flow"
)

// TestCompact: an entry comes out as it went in, and is compared as it would be.
func TestCompact(t *testing.T) {
	list := []flow.Entry{
		{},
		{Table: 30, Goto: 40, Priority: 7, IdleTimeout: 8, HardTimeout: 9, Flags: flow.FlagSendRem, Meter: 3, Metadata: 5, MetaMask: 7, Clear: true},
		{Priority: 100, Match: flow.Match{}.WithEthType(flow.EthTypeIPv4).WithIPv4Dst(netip.MustParsePrefix("10.1.0.0/16")), Apply: []flow.Action{flow.Output(1)}},
		{Match: flow.Match{}.WithEthSrc(flow.MAC{2}), HasWrite: true, Write: []flow.Action{flow.SetEthDst(flow.MAC{2, 1}), flow.ToGroup(9)}},
	}
	for i := range list {
		list[i].Cookie = flow.NewCookie(flow.OwnerOperator, 1, 5)
		c := pack(&list[i])
		if got := c.entry(); !got.Same(&list[i]) || got.Key() != list[i].Key() || got.Cookie != list[i].Cookie {
			t.Errorf("%v became %v", &list[i], got)
		}
		if c.owner() != flow.OwnerOperator || c.priority != list[i].Priority || c.idle != list[i].IdleTimeout || c.table != list[i].Table || c.next != list[i].Goto {
			t.Errorf("%v has %+v", &list[i], c)
		}
		for k := range list {
			other := list[k]
			other.Cookie = flow.NewCookie(flow.OwnerOperator, 2, 5)
			if got, want := c.same(&other), list[i].Same(&other) && list[i].Key() == other.Key(); got != want {
				t.Errorf("%v and %v: same %v, want %v", &list[i], &other, got, want)
			}
			other.Cookie = flow.NewCookie(flow.OwnerOperator, 2, 6)
			if c.same(&other) {
				t.Errorf("%v is the same with another number", &other)
			}
		}
	}
	masked := flow.Entry{Metadata: 0xff, MetaMask: 0xf}
	c := pack(&masked)
	if masked.Metadata = 0xf; !c.same(&masked) {
		t.Error("bits outside the mask count")
	}
}

// TestRuleIsSmall: 100,000 entries are to cost less than 1 KiB each in all, with
// what the maps, the store and the collector take.
func TestRuleIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(rule{}); n > 256 {
		t.Errorf("a rule takes %d octets, want at most 256", n)
	}
	e := flow.Entry{Priority: 1, Match: flow.Match{}.WithEthType(flow.EthTypeIPv4).WithIPv4Dst(netip.MustParsePrefix("10.1.0.1/32")), Apply: []flow.Action{flow.Output(1)}}
	if r := newRule(&e, time.Now()); len(r.code) > 32 {
		t.Errorf("its entry takes %d octets more, want at most 32", len(r.code))
	}
}
