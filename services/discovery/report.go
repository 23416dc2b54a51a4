package discovery

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
)

// logDamping logs that a link is now dampened, or no longer.
func (e *engine) logDamping(d *damping) {
	if d.hold == 0 {
		e.log.Info("link is no longer dampened", "from", d.pair.a, "to", d.pair.b)
		return
	}
	e.log.Warn("link goes down too often and is dampened: it is used only where there is no other way",
		"from", d.pair.a, "to", d.pair.b, "until_up_for", time.Duration(d.hold))
}

// logHeld logs that a link is held, and what to do about it.
func (e *engine) logHeld(l *api.Link) {
	if e.lines.Allow() {
		a, b := l.Src.Flow(), l.Dst.Flow()
		e.log.Warn("link is held: it may be a relay between hosts; if it is a cable, allow it", "from", a, "to", b, "reason", l.Reason,
			"allow", fmt.Sprintf("weft link allow %v:%d %v:%d", a.Switch, uint32(a.Port), b.Switch, uint32(b.Port)))
	}
}
