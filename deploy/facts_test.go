package deploy

import (
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
)

// TestLateFact has events of an earlier run come after those of a later one.
func TestLateFact(t *testing.T) {
	n := &Node{entries: map[string]*members.Entry{}}
	f := &facts{n: n}
	sub := &local.Subject{Name: api.LinkChangedEvent.SubjectName(), Decl: api.LinkChangedEvent}
	f.note(sub, "1/1", &api.LinkChanged{Link: &api.Link{State: "up"}}, publisher{epoch: 2})
	for _, x := range []struct {
		key    string
		source publisher
		listed bool
		want   bool
	}{
		{"1/1", publisher{epoch: 1}, false, true},
		{"1/1", publisher{epoch: 1}, true, false}, // a replica that runs
		{"1/1", publisher{epoch: 2}, false, false},
		{"1/1", publisher{epoch: 3}, false, false},
		{"1/1", publisher{1, "east"}, false, false},
		{"2/1", publisher{epoch: 1}, false, false}, // nothing known of it
	} {
		clear(n.entries)
		if x.listed {
			n.entries["a"] = &members.Entry{Services: []members.ServiceState{{Name: "discovery", Epoch: x.source.epoch}}}
		}
		if got := f.late(sub, x.key, x.source); got != x.want {
			t.Errorf("%s by %v, listed %v: late %v, want %v", x.key, x.source, x.listed, got, x.want)
		}
	}
}
