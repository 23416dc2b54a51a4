package deploy

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/deploy/members"
)

// TestNextEpoch checks that a run which begins after the clock was set back counts
// instead of the earlier ones.
func TestNextEpoch(t *testing.T) {
	now := uint64(time.Now().UnixNano())
	m := &membership{ahead: -time.Hour, entries: map[string]*members.Entry{
		"a": {Process: "a", Services: []members.ServiceState{{Name: "southbound", Epoch: now}, {Name: "hosts", Epoch: now + 7}}},
		"b": {Process: "b"},
	}}
	if e := m.nextEpoch(); e != now+8 {
		t.Errorf("epoch %d after %d: want the next one", e, now+7)
	}
	m.ahead = time.Hour
	if e := m.nextEpoch(); e < now+uint64(time.Hour)-uint64(time.Minute) {
		t.Errorf("epoch %d, want the time", e)
	}
}
