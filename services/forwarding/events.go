package forwarding

import (
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// converged moves the routes over a lost link to other paths, egress first, and
// removes those without a path. With several instances of paths it is called
// for each; it asks those that still disagree again when they report
// convergence.
func (e *engine) converged(ev *api.PathsConverged) {
	now := e.now()
	e.links.handlePaths(ev, now)
	e.paths.invalidate(e.links.listLost(now))
	e.rescue(now)
}

// linkChanged handles discovery's report of a link. It acts on a loss only once
// paths are computed without the link.
func (e *engine) linkChanged(ev *api.LinkChanged) {
	now := e.now()
	e.links.handleLink(ev, now)
	e.paths.invalidate(e.links.listLost(now))
	e.adoption.notePending(now)
}

// hostChanged moves or removes the routes of a host, and releases the packets
// held for it.
func (e *engine) hostChanged(ev *api.HostChanged) {
	mac, err := flow.ParseMAC(ev.Host.Mac)
	if err != nil {
		return
	}
	host := knownHost{mac, vlanKey(ev.Host.Vlan)}
	free, held := e.hosts.update(host, ev)
	if free && e.cfg.Mode == modeProactive {
		e.connectLater(host)
	}
	if held {
		e.removeHostRoutes(host)
	}
	if ev.Change != "gone" {
		e.releaseForHost(ev.Host, mac)
	}
	// That it has moved may not have been heard: another run of hosts says only where it is.
	told := ev.Change == "moved" || ev.Change == "gone"
	var hit []*route
	e.routes.find([]routeKey{keyOfHost(mac)}, func(r *route) {
		if e.replicas.owns(r.pair) && (told || !e.hosts.agreeOnEnds(r)) {
			hit = append(hit, r)
		}
	})
	if !told && len(hit) == 0 {
		return
	}
	reason := "host moved"
	if ev.Change == "gone" {
		reason = "host gone"
	}
	e.hosts.lookAgain(e.now(), mac)
	e.move(relocation{routes: hit, began: e.now(), reason: reason, ends: e.hosts.ends})
}

// regroup sets the number of instances and takes over what now belongs to this
// one. One goroutine at a time calls it.
func (e *engine) regroup(f *flooding, index, count int) {
	_, before := e.replicas.set(index, count)
	takesOver := f.appoint(index == 0)
	e.checkTakenOver()
	e.connectAgain()
	f.share()
	if takesOver || index == 0 && count < before { // it may not have shared everything
		e.askAgain()
	}
}

// handleSwitch handles the connection or disconnection of a switch.
func (e *engine) handleSwitch(f *flooding, ev *api.SwitchChanged) {
	again, heard := e.sessions.handleSwitch(ev)
	e.switchChanged(ev)
	if again {
		f.noteChange()
	} else {
		f.switchChanged(ev)
	}
	for _, o := range heard {
		e.applyReport(f, o)
	}
}

// handleReport handles a report of a switch's entries.
func (e *engine) handleReport(f *flooding, ev *api.FlowsObserved) {
	if e.sessions.acceptReport(ev) {
		e.applyReport(f, ev)
	}
}

// applyReport applies a report that belongs to the session of its switch.
func (e *engine) applyReport(f *flooding, ev *api.FlowsObserved) {
	if e.findReserved(ev) {
		f.noteChange()
	}
	e.handleRouteReport(ev)
	f.handleReport(ev)
}

// switchChanged records that a switch has connected, with its ports, or has gone.
func (e *engine) switchChanged(ev *api.SwitchChanged) {
	sw, err := flow.ParseDPID(ev.Switch.Dpid)
	if err != nil {
		return
	}
	e.adoption.expectReport(sw, ev.Switch, e.now())
	e.setSwitch(sw, ev)
}
