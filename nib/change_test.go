package nib

import (
	"fmt"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestAnew: a Change shows that a thing was gone meanwhile, also if it is now as it
// was before.
func TestAnew(t *testing.T) {
	b := New()
	b.Read(every)
	from := Source{Epoch: 1}
	for _, kind := range []string{"switch", "host"} {
		b.Apply(from, kinds[kind](1, 3, false))
		was := b.Snapshot()
		b.Apply(from, kinds[kind](1, 4, false))
		changed := Change{was, b.Snapshot()}
		b.Apply(from, kinds[kind](1, 4, true))
		b.Apply(from, kinds[kind](1, 3, false))
		anew := Change{was, b.Snapshot()}
		if kind == "switch" {
			if a, b := changed.Switches(), anew.Switches(); len(a) != 1 || Anew(a[0]) || len(b) != 1 || !Anew(b[0]) {
				t.Errorf("%s: %v, %v", kind, a, b)
			}
		} else if a, b := changed.Hosts(), anew.Hosts(); len(a) != 1 || Anew(a[0]) || len(b) != 1 || !Anew(b[0]) {
			t.Errorf("%s: %v, %v", kind, a, b)
		}
	}
}

// TestReaders: a part is empty unless it is read. A later reader of ports finds those
// of all known switches.
func TestReaders(t *testing.T) {
	b, from := New(), Source{Epoch: 1}
	if first := b.Read(Switches | Hosts); first != Switches|Hosts {
		t.Errorf("first readers of %b", first)
	}
	if first := b.Read(Switches); first != 0 {
		t.Errorf("first readers of %b", first)
	}
	b.Apply(from, kinds["switch"](1, 2, false))
	b.Apply(from, kinds["host"](1, 2, false))
	b.Complete(Hosts, from)
	b.Apply(from, &api.HostsSettled{})
	at := flow.Location{Switch: 1, Port: 1}
	if b.Snapshot().Port(at) != nil {
		t.Error("ports that nobody reads")
	}
	b.Read(Ports)
	if b.Snapshot().Port(at) == nil || !b.Snapshot().Heard(Hosts) || b.Snapshot().Only(Switches).Heard(Hosts) {
		t.Error("want the ports of the switch, and the hosts in full")
	}
	b.Leave(Hosts | Switches)
	if s := b.Snapshot(); s.Host(HostKey{1, flow.MACFrom(1)}) != nil || s.Heard(Hosts) || s.Connected(1) == nil {
		t.Error("want no hosts, and the switch for who still reads it")
	}
}

// TestHeardHosts: hosts are heard once a run has sent what it retained and has said that
// this is all that its earlier runs knew, in whichever order, and not while a later run
// has yet to say so.
func TestHeardHosts(t *testing.T) {
	b, first, second := New(), Source{Epoch: 1}, Source{Epoch: 2}
	b.Read(Hosts.Closed())
	calls := 0
	b.Watch(Hosts, func() { calls++ })
	for i, step := range []struct {
		do    func()
		heard bool
		why   string
	}{
		{func() { b.Complete(Hosts, first) }, false, "it has only begun"},
		{func() { b.Apply(first, kinds["host"](1, 1, false)) }, false, "an earlier run may have known more"},
		{func() { b.Apply(first, &api.HostsSettled{}) }, true, "it has said all"},
		{func() { b.Apply(second, &api.HostsSettled{}) }, false, "what another run retained is on its way"},
		{func() { b.Complete(Hosts, second) }, true, "all of it has come"},
		{func() { b.Apply(first, &api.HostsSettled{}) }, true, "that was the run before"},
		{func() { b.Over(Hosts, second) }, true, "what it has said remains"},
		{func() { b.Complete(Hosts, Source{Epoch: 3}) }, false, "the next has only begun"},
	} {
		before := b.Snapshot()
		calls = 0
		if step.do(); b.Snapshot().Heard(Hosts) != step.heard {
			t.Errorf("step %d: hosts are heard: %v, and %s", i+1, !step.heard, step.why)
		}
		if step.heard != before.Heard(Hosts) && calls == 0 {
			t.Errorf("step %d: nobody is notified that %s", i+1, step.why)
		}
	}
}

// BenchmarkApply is one event in networks of two sizes: it must not take longer in
// the larger one, but for the depth of the tries.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		base, from := New(), Source{Epoch: 1}
		base.Read(every)
		at := func(i int) *api.Location {
			return &api.Location{Dpid: flow.DPID(1 + i%n).String(), Port: uint32(1 + i/n)}
		}
		host := func(i, value int) *api.HostChanged {
			return &api.HostChanged{Host: &api.Host{Mac: flow.MACFrom(uint64(i)).String(), At: at(i), Moves: uint32(value)}}
		}
		for i := range n {
			e := &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1 + i).String(), Connected: true}}
			for p := 1; p <= 48; p++ {
				e.Ports = append(e.Ports, port(1+i, p, 0))
			}
			base.Apply(from, e)
		}
		for i := range 10 * n {
			base.Apply(from, host(i, 0))
			base.Apply(from, &api.PortRoleChanged{Port: &api.PortRole{At: at(i), Role: "edge"}})
		}
		run := func(name string, event func(i, value int) any) {
			events := make([]any, 0, 4096)
			for i := range cap(events) {
				events = append(events, event(i%n, 1+i/n))
			}
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				value := 0
				for i := 0; b.Loop(); i++ {
					if i%len(events) == 0 {
						value++
						from.Epoch++ // said by another run: each is a change
					}
					base.Apply(from, events[i%len(events)])
				}
			})
		}
		run("host", func(i, value int) any { return host(i, value) })
		run("role", func(i, value int) any {
			return &api.PortRoleChanged{Port: &api.PortRole{At: at(i), Role: "edge", Cause: fmt.Sprint(value)}}
		})
		run("port", func(i, value int) any { return &api.PortChanged{Port: port(1+i, 3, value)} })
		b.Run(fmt.Sprintf("change/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				was := base.Snapshot()
				from.Epoch++
				base.Apply(from, host(i%(10*n), i))
				if len(Change{was, base.Snapshot()}.Hosts()) != 1 {
					b.Fatal("want one change")
				}
			}
		})
	}
}

// TestConnections: a switch that was gone meanwhile is gone first and then there, and the
// switches are named at which other ports have a role.
func TestConnections(t *testing.T) {
	b := New()
	b.Read(every)
	from := Source{Epoch: 1}
	role := func(port uint32, name string) {
		b.Apply(from, &api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: flow.DPID(1).String(), Port: port}, Role: name}})
	}
	b.Apply(from, kinds["switch"](1, 3, false))
	role(1, "edge")
	was := b.Snapshot()
	b.Apply(from, kinds["switch"](1, 3, true))
	b.Apply(from, kinds["switch"](1, 4, false))
	role(1, "link")
	role(2, "link")
	c := Change{was, b.Snapshot()}
	var connected []bool
	for sw, e := range c.Connections() {
		connected = append(connected, e.Switch.Connected)
		if sw != 1 {
			t.Errorf("switch %v", sw)
		}
	}
	if fmt.Sprint(connected) != "[false true]" {
		t.Errorf("connected: %v, want false, true", connected)
	}
	if list := c.SwitchesOf(flow.RoleLink); fmt.Sprint(list) != "[0000000000000001]" || len(c.SwitchesOf(flow.RoleBlocked)) != 0 {
		t.Errorf("switches of links: %v", list)
	}
}
