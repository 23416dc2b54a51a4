package deploy

import (
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
)

// TestLateFact has events of an earlier run come after those of a later one.
func TestLateFact(t *testing.T) {
	m := &membership{entries: map[string]*members.Entry{}}
	f := newFacts(m, nil, nil)
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
		clear(m.entries)
		if x.listed {
			m.entries["a"] = &members.Entry{Services: []members.ServiceState{{Name: "discovery", Epoch: x.source.epoch}}}
		}
		if got := f.isOutdated(sub, x.key, &api.LinkChanged{}, x.source); got != x.want {
			t.Errorf("%s by %v, listed %v: late %v, want %v", x.key, x.source, x.listed, got, x.want)
		}
	}
}

// TestReplacedRun: of a service with standbys, what an earlier run says of something is late
// as soon as a later one has said something of it, though the directory lists both.
func TestReplacedRun(t *testing.T) {
	m := &membership{entries: map[string]*members.Entry{"a": {Services: []members.ServiceState{{Name: "southbound", Epoch: 1}}}}}
	f := newFacts(m, nil, []weft.Spec{{Name: "southbound", Standby: true}})
	sub := &local.Subject{Name: api.SwitchChangedEvent.SubjectName(), Decl: api.SwitchChangedEvent}
	up, down := &api.SwitchChanged{Switch: &api.Switch{Dpid: "1", Connected: true}}, &api.SwitchChanged{Switch: &api.Switch{Dpid: "1"}}
	f.note(sub, "1", up, publisher{epoch: 1})
	if f.isOutdated(sub, "1", down, publisher{epoch: 1}) {
		t.Error("what the only run says is late")
	}
	f.note(sub, "1", up, publisher{epoch: 2})
	if !f.isOutdated(sub, "1", down, publisher{epoch: 1}) {
		t.Error("what a replaced run says is not late")
	}
	if f.isOutdated(sub, "1", down, publisher{epoch: 2}) || f.isOutdated(sub, "2", down, publisher{epoch: 1}) || f.isOutdated(sub, "1", down, publisher{1, "east"}) {
		t.Error("what the later run says, or nobody else has said, is late")
	}
}

// TestLateLastingFact has where a host was in an earlier run come after where a
// later one saw it: no sweep mends that.
func TestLateLastingFact(t *testing.T) {
	sub := &local.Subject{Name: api.HostChangedEvent.SubjectName(), Decl: api.HostChangedEvent}
	learnt, gone := &api.HostChanged{Change: "learnt"}, &api.HostChanged{Change: "gone"}
	type told struct {
		key   string
		event *api.HostChanged
		by    publisher
	}
	one, two, east := publisher{epoch: 1}, publisher{epoch: 2}, publisher{2, "east"}
	for _, x := range []struct {
		name   string
		before []told
		now    told
		listed bool // the run that tells it now
		want   bool
	}{
		{"the only run", []told{{"a", learnt, one}}, told{"a", gone, one}, false, false},
		{"the later run", []told{{"a", learnt, one}}, told{"a", learnt, two}, true, false},
		{"moved since", []told{{"a", learnt, one}, {"a", learnt, two}}, told{"a", learnt, one}, false, true},
		{"learnt again since", []told{{"a", learnt, one}, {"a", learnt, two}}, told{"a", gone, one}, false, true},
		{"both run", []told{{"a", learnt, one}, {"a", learnt, two}}, told{"a", learnt, one}, true, false},
		{"gone since", []told{{"a", learnt, one}, {"a", learnt, two}, {"a", gone, two}}, told{"a", learnt, one}, false, true},
		{"not known to the later run", []told{{"a", learnt, one}, {"b", learnt, two}}, told{"a", gone, one}, false, false},
		{"never known to the later run", []told{{"b", learnt, two}}, told{"a", learnt, one}, false, true},
		{"of another partition", []told{{"a", learnt, east}}, told{"a", learnt, one}, false, false},
	} {
		m := &membership{entries: map[string]*members.Entry{}}
		f := newFacts(m, nil, nil)
		for _, b := range x.before {
			f.note(sub, b.key, b.event, b.by)
		}
		if x.listed {
			m.entries["a"] = &members.Entry{Services: []members.ServiceState{{Name: "hosts", Epoch: x.now.by.epoch}}}
		}
		if got := f.isOutdated(sub, x.now.key, x.now.event, x.now.by); got != x.want {
			t.Errorf("%s: late %v, want %v", x.name, got, x.want)
		}
		for _, m := range f.known {
			for _, fact := range m {
				f.withdrawOlder(sub, fact.source, fact.number) // withdraws nothing
			}
		}
	}
}

// TestFactBehind has an earlier run that still runs speak after a later one, as one does whose
// events have waited for a process that was suspended: once it is over, what the later one has
// said holds again.
func TestFactBehind(t *testing.T) {
	sub := &local.Subject{Name: api.LinkChangedEvent.SubjectName(), Decl: api.LinkChangedEvent}
	link := func(state string) *api.LinkChanged {
		return &api.LinkChanged{Link: &api.Link{Src: &api.Location{Dpid: "1", Port: 1}, Dst: &api.Location{Dpid: "2", Port: 1}, State: state}, Removed: state == "down"}
	}
	up, oneWay, down := link("up"), link("one_way"), link("down")
	type told struct {
		event *api.LinkChanged
		epoch uint64
	}
	for _, x := range []struct {
		name   string
		before []told
		over   uint64 // up to this epoch
		want   *api.LinkChanged
		known  bool
	}{
		{"the earlier run alone", []told{{up, 1}}, 1, down, false},
		{"the later run last", []told{{up, 1}, {oneWay, 2}}, 1, nil, true},
		{"the earlier run last", []told{{oneWay, 2}, {up, 1}}, 1, oneWay, true},
		{"the earlier run twice", []told{{oneWay, 2}, {up, 1}, {up, 1}}, 1, oneWay, true},
		{"the later run again", []told{{oneWay, 2}, {up, 1}, {up, 2}}, 1, nil, true},
		{"gone by the earlier run", []told{{up, 2}, {down, 1}}, 1, up, true},
		{"gone by the later run before", []told{{up, 2}, {down, 2}, {up, 1}}, 1, down, false},
		{"gone by both", []told{{up, 2}, {down, 1}, {down, 2}}, 1, nil, false},
		{"three runs", []told{{up, 3}, {oneWay, 2}, {oneWay, 1}}, 2, up, true},
		{"all over", []told{{up, 2}, {oneWay, 1}}, 2, down, false},
		{"none over", []told{{up, 2}, {oneWay, 1}}, 0, nil, true},
	} {
		f := newFacts(&membership{}, nil, nil)
		f.members.links.View.Store(&members.View{})
		for _, b := range x.before {
			f.note(sub, "1/1", b.event, publisher{epoch: b.epoch})
		}
		var event any
		if _, known := f.known[sub]["1/1"]; known {
			event, _ = settled(sub, f.known[sub], "1/1", func(n noted) bool { return n.source.epoch <= x.over })
		}
		got, _ := event.(*api.LinkChanged)
		if got.GetRemoved() != x.want.GetRemoved() || !got.GetRemoved() && got != x.want {
			t.Errorf("%s: told %v, want %v", x.name, got, x.want)
		}
		if _, known := f.known[sub]["1/1"]; known != x.known {
			t.Errorf("%s: known %v, want %v", x.name, known, x.known)
		}
	}
}
