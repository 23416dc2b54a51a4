package tunnels

import (
	"cmp"
	"maps"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// The states of BFD sessions, as nodes tells them.
const (
	bfdUp   = "up"
	bfdInit = "init"
	bfdDown = "down"
)

// nodeChanged follows a hybrid node. A port whose BFD session was up and is not
// any more is dead, until the session is up again or has ended: discovery finds a
// silent cut only when its probes are missing. A session that has not been up says
// nothing, since its other end may not have begun. It is called with mu held.
func (b *store) nodeChanged(s nib.Step[nib.Node]) {
	sw := cmp.Or(s.Is, s.Was).Key
	was, now := b.sessions[sw], map[flow.Port]bool{}
	if s.Is != nil && s.Is.Is.State == "live" {
		for _, p := range s.Is.Is.Report.Ports {
			_, known := was[flow.Port(p.Port)]
			switch p.Bfd {
			case bfdUp:
				now[flow.Port(p.Port)] = true
			case bfdInit, bfdDown:
				if known {
					now[flow.Port(p.Port)] = false
				}
			}
		}
	}
	if b.sessions[sw] = now; len(now) == 0 {
		delete(b.sessions, sw)
	}
	touched := map[flow.Port]bool{}
	maps.Copy(touched, was)
	maps.Copy(touched, now)
	for _, port := range sorted(touched) {
		if before, after := dead(was, port), dead(now, port); before != after {
			b.portDied(flow.Location{Switch: sw, Port: port}, after)
		}
	}
}

// dead reports whether a port's session is no longer up.
func dead(sessions map[flow.Port]bool, port flow.Port) bool {
	up, known := sessions[port]
	return known && !up
}

// portDied has the tunnels seen to whose links leave by a port or come in at it, in
// case it is dead now or no longer; and then those, too, that lack a path, since they are
// over no port. It is called with mu held.
func (b *store) portDied(at flow.Location, died bool) {
	if b.dead[at] = died; !died {
		delete(b.dead, at)
		b.improved.last = b.now()
		seekAgain(b, func(*status) bool { return true })
	}
	names := map[string]bool{}
	maps.Copy(names, b.over[at])
	for far := range b.links.by[at] {
		maps.Copy(names, b.over[far])
	}
	for _, name := range sorted(names) {
		b.judge(b.status[name])
	}
}
