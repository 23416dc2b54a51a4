package object

import (
	"fmt"
	"testing"
	"time"
)

func TestLimitsReached(t *testing.T) {
	var l Limits
	now := int64(1e18)
	l.Reach(now, "hosts.address_limit", 128, "host a")
	l.Reach(now, "hosts.address_limit", 128, "host a")
	l.Reach(now, "hosts.limit", 5, "")
	list := l.List(now)
	if len(list) != 2 || list[0].Key != "hosts.address_limit" || list[0].Who != "host a" || list[0].Limit != 128 || list[0].Times != 2 {
		t.Errorf("%v", list)
	}
	for i := range 2 * limitsMost {
		l.Reach(now, "k", 1, fmt.Sprint(i))
	}
	if n := len(l.List(now)); n != limitsMost {
		t.Errorf("%d remembered", n)
	}
	if list := l.List(now + int64(limitsFor+2*time.Second)); len(list) != 0 {
		t.Errorf("ten minutes later: %v", list)
	}
}
