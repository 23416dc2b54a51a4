package forwarding

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"time"

	"weft/api"
	"weft/flow"
)

// converged moves the routes that a lost link carried to other paths, egress
// first, and removes those for which there is none.
func (e *engine) converged(ev *api.PathsConverged) {
	if len(ev.Lost) == 0 {
		return
	}
	began := time.Now()
	var hit []*route
	lost := make(map[flow.Location]bool, 2*len(ev.Lost))
	for _, l := range ev.Lost {
		lost[l.Src.Flow()], lost[l.Dst.Flow()] = true, true
	}
	e.routes.each(func(r *route) {
		for _, h := range r.hops[:len(r.hops)-1] {
			if lost[flow.Location{Switch: h.sw, Port: h.out}] {
				hit = append(hit, r)
				return
			}
		}
		for _, alt := range r.detours {
			for _, h := range alt.hops {
				if lost[flow.Location{Switch: h.sw, Port: h.out}] {
					hit = append(hit, r)
					return
				}
			}
		}
	})
	e.move(hit, began, "link lost", func(r *route) (from, to flow.Location) { return r.ends() })
}

// ends returns the ports of the sender and of the receiver.
func (r *route) ends() (from, to flow.Location) {
	return flow.Location{Switch: r.first().sw, Port: r.first().in}, flow.Location{Switch: r.last().sw, Port: r.last().out}
}

// move programs routes anew between the ends that at says.
func (e *engine) move(list []*route, began time.Time, reason string, at func(*route) (from, to flow.Location)) {
	if len(list) == 0 {
		return
	}
	d := &flow.Decision{}
	events := make([]*api.RouteChanged, 0, len(list))
	now := began.UnixNano()
	for _, old := range list {
		from, to := at(old)
		var r *route
		if from != to {
			r = e.compute(old.pair, from, to, old.rewrite)
		}
		if r != nil {
			r.since, r.sent, r.moved = old.since, now, old.moved+1
		}
		if !e.replace(old, r) {
			continue // a packet was faster
		}
		about, change := r, "rerouted"
		if r == nil {
			about, change = old, "removed"
			e.count.lost.Add(1)
		} else {
			e.program.add(d, r, old, nil)
			e.count.rerouted.Add(1)
		}
		e.program.remove(d, old, r)
		events = append(events, &api.RouteChanged{Route: about.message(), Change: change, Reason: reason})
	}
	if _, err := e.send(d); err != nil {
		e.log.Error("routes not programmed", "routes", len(list), "error", err)
	}
	took := time.Since(began)
	for _, ev := range events {
		ev.TookUs = uint64(took.Microseconds())
		e.publish(ev)
	}
	e.log.Info("routes moved", "routes", len(list), "reason", reason, "took", took)
}

// replace puts r, or nothing, in the place of old, if old is still there.
func (e *engine) replace(old, r *route) (done bool) {
	e.routes.with(old.pair, func(m map[pair]*route) {
		if done = m[old.pair] == old; !done {
			return
		}
		if r == nil {
			delete(m, old.pair)
		} else {
			m[old.pair] = r
		}
	})
	return done
}

// hostChanged moves or removes the routes of a host.
func (e *engine) hostChanged(ev *api.HostChanged) {
	mac, err := flow.ParseMAC(ev.Host.Mac)
	if err != nil {
		return
	}
	if e.cfg.Mode == modeProactive {
		e.known.update(mac, ev)
	}
	switch ev.Change {
	case "moved", "gone":
	case "learnt":
		if e.cfg.Mode == modeProactive {
			e.connectAll(mac, ev.Host)
		}
		return
	default:
		return
	}
	var hit []*route
	e.routes.each(func(r *route) {
		if r.src == mac || r.dst == mac || r.ip.IsValid() && rewritesTo(r.rewrite, mac) {
			hit = append(hit, r)
		}
	})
	at := ev.Host.At.Flow()
	e.move(hit, time.Now(), "host "+ev.Change, func(r *route) (from, to flow.Location) {
		if ev.Change == "gone" {
			return from, to
		}
		from, to = r.ends()
		if r.src == mac {
			from = at
		} else {
			to = at
		}
		return from, to
	})
}

func rewritesTo(list []flow.Action, mac flow.MAC) bool {
	for _, a := range list {
		if a == flow.SetEthDst(mac) {
			return true
		}
	}
	return false
}

// flowRemoved forgets a route whose first entry was idle for too long; its
// others are so too.
func (e *engine) flowRemoved(ev *api.FlowRemoved) {
	_, entry, err := ev.Flow.Entry()
	if err != nil || entry.Cookie.Owner() != flow.OwnerRoutes || ev.Reason == "delete" {
		return
	}
	p, in, ok := pairOf(&entry.Match)
	if !ok {
		return
	}
	sw, _ := flow.ParseDPID(ev.Flow.Dpid)
	var gone *route
	e.routes.with(p, func(m map[pair]*route) {
		if r := m[p]; r != nil && r.first().sw == sw && r.first().in == in {
			gone = r
			delete(m, p)
		}
	})
	if gone == nil {
		return
	}
	e.count.idle.Add(1)
	if gone.protected() {
		d := &flow.Decision{}
		e.program.remove(d, gone, nil)
		if _, err := e.send(d); err != nil {
			e.log.Warn("idle route not removed", "error", err)
		}
	}
	e.publish(&api.RouteChanged{Route: gone.message(), Change: "removed", Reason: "idle"})
}

// switchError gives up a route of which a switch has refused an entry: its
// packets come to the controller one by one, and each is delivered.
func (e *engine) switchError(ev *api.SwitchError) {
	v, err := strconv.ParseUint(ev.Cookie, 16, 64)
	cookie := flow.Cookie(v)
	if err != nil || cookie.Owner() != flow.OwnerRoutes {
		return
	}
	e.count.refused.Add(1)
	var failed *route
	e.routes.each(func(r *route) {
		if r.id() == cookie.ID() {
			failed = r
		}
	})
	if failed == nil {
		return
	}
	e.publish(&api.RouteChanged{Route: failed.message(), Change: "failed", Reason: fmt.Sprintf("switch %s: %s", ev.Dpid, ev.Text)})
}

func (e *engine) listRoutes(context.Context, *api.ListRoutesRequest) (*api.ListRoutesResponse, error) {
	resp := &api.ListRoutesResponse{}
	e.routes.each(func(r *route) { resp.Routes = append(resp.Routes, r.message()) })
	sort.Slice(resp.Routes, func(i, j int) bool {
		a, b := resp.Routes[i], resp.Routes[j]
		return a.Src < b.Src || a.Src == b.Src && (a.Dst < b.Dst || a.Dst == b.Dst && a.Vlan < b.Vlan)
	})
	return resp, nil
}
