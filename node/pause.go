package node

import (
	"maps"
	"time"
)

// Open vSwitch that was not given time finds, when it goes on, that all its BFD sessions
// are silent at once, though no link is cut; a second later all are up again. Links do not
// fail like that, so such alarms are not believed while they may end.
const (
	pauseSpan = 200 * time.Millisecond // within which a pause shows in all sessions
	doubtTime = 3 * time.Second        // for which an alarm is not believed
)

// pauses is, by interface, when its session was last seen to go down with the link up, and
// until when that is not believed.
type pauses struct {
	down, doubt map[string]time.Time
}

// isUp and isDown report how the session of an interface is that has one and its link.
func (i *iface) isUp() bool { return i.bfd["enable"] == "true" && i.bfdStatus["state"] == bfdUp }

func (i *iface) isDown() bool {
	state := i.bfdStatus["state"]
	return i.bfd["enable"] == "true" && i.linkState == "up" && (state == "down" || state == "init")
}

// follow notes what has become of an interface.
func (p *pauses) follow(was, is *iface, now time.Time) {
	if p.down == nil {
		p.down, p.doubt = map[string]time.Time{}, map[string]time.Time{}
	}
	switch {
	case !is.isDown():
		delete(p.down, is.name)
		delete(p.doubt, is.name)
	case was.isUp():
		p.down[is.name] = now
	}
}

// found reports whether all sessions that were up, two at least, have just gone down; then
// none of that is believed.
func (p *pauses) found(all map[string]iface, now time.Time) bool {
	var at []string
	for _, i := range all {
		when, down := p.down[i.name]
		switch {
		case i.isUp():
			return false
		case down && now.Sub(when) < pauseSpan:
			at = append(at, i.name)
		}
	}
	fresh := false
	if len(at) > 1 {
		for _, name := range at {
			if p.doubt[name].IsZero() {
				p.doubt[name], fresh = now.Add(doubtTime), true
			}
		}
	}
	return fresh
}

// believe returns an interface with the state of its session that is believed.
func (p *pauses) believe(i iface, now time.Time) iface {
	if now.Before(p.doubt[i.name]) {
		i.bfdStatus = maps.Clone(i.bfdStatus)
		i.bfdStatus["state"] = bfdUp
	}
	return i
}
