package southbound

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// A new plan may give a switch to another partition. Its new owner takes it
// over as a standby takes over from a dead master: by a role request with a
// higher generation, over a session that it already holds if the bridge has
// both as controllers and southbound.hold_others is on. The former owner goes
// on until the switch reports another master, and then releases it.

// Times of a move.
const (
	// moveSettle is how long the new owner waits, so that the processes of the
	// former owner apply the plan and finish what they have begun. Their later
	// decisions go to the new owner.
	moveSettle = 500 * time.Millisecond
	// yieldPoll is how often the former owner asks the switch who is master.
	yieldPoll = 50 * time.Millisecond
	// yieldLinger is how long the former owner then keeps the session, for
	// decisions about packets that the switch sent before.
	yieldLinger = time.Second
	// yieldWarn is how long nobody may take the switch before the log warns.
	yieldWarn = 10 * time.Second
)

// owns reports whether a switch belongs to this partition.
func (h *hub) owns(sw flow.DPID) bool { return h.mine.Load().Admits(sw) == nil }

// repartition applies a new list of this partition's switches.
func (h *hub) repartition(p admission.Partition, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.before == nil {
		h.before = h.mine.Load()
	}
	h.mine.Store(&p)
	h.settled = now.Add(moveSettle)
}

// isMasterOf reports whether this process must be master of a switch now. The
// caller holds the lock.
func (h *hub) isMasterOf(sw flow.DPID) bool {
	return h.master && h.owns(sw) && (h.before == nil || h.before.Admits(sw) == nil)
}

// rearrange takes over switches that have come to this partition and releases
// those that have left it, until ctx ends.
func (h *hub) rearrange(ctx context.Context) error {
	for backoff.Sleep(ctx, yieldPoll) == nil {
		now := time.Now()
		h.mu.Lock()
		if h.before == nil && h.mine.Load().Alone() {
			h.mu.Unlock()
			continue
		}
		settled := h.before != nil && now.After(h.settled)
		if settled {
			h.before = nil
		}
		master := h.master
		h.mu.Unlock()
		if settled && master {
			h.promote(h.epoch.Load())
		}
		hold := h.cfg.Load().HoldOthers
		for _, m := range h.allMembers() {
			switch {
			case h.owns(m.DPID):
				m.leavingSince.Store(0)
			case h.Session(m.DPID) == m.Session:
				m.leavingSince.CompareAndSwap(0, now.UnixNano())
				if m.yielding.CompareAndSwap(false, true) {
					go h.yieldSwitch(ctx, m)
				}
			case !hold:
				m.End(h.mine.Load().Admits(m.DPID).Error())
			}
		}
	}
	return nil
}

// yieldSwitch releases a switch if another process is already its master. It releases
// a switch of OpenFlow 1.0, which has no masters, at once.
func (h *hub) yieldSwitch(ctx context.Context, m *member) {
	defer m.yielding.Store(false)
	role := openflow.RoleSlave
	if m.Version == openflow.V13 {
		ctx, cancel := context.WithTimeout(ctx, h.cfg.Load().ConfirmTimeout)
		defer cancel()
		var err error
		if role, _, err = m.CurrentRole(ctx); err != nil {
			return
		}
	}
	reason := h.mine.Load().Admits(m.DPID)
	switch {
	case reason == nil: // it has come back meanwhile
	case role == openflow.RoleSlave:
		if m.Version == openflow.V13 {
			_ = backoff.Sleep(ctx, yieldLinger)
		}
		m.End(movedReason(h.mine.Load(), m.DPID))
	case time.Since(time.Unix(0, m.leavingSince.Load())) > yieldWarn && m.warned.CompareAndSwap(false, true):
		h.Log.Warn("a switch has gone to another partition in the plan, and nobody there has taken it: add that partition's southbound to the controllers of its bridge", "dpid", m.DPID, "error", reason)
	}
}

// movedReason returns where a switch has gone.
func movedReason(p *admission.Partition, sw flow.DPID) string {
	if name := p.OwnerOf(sw); name != "" {
		return fmt.Sprintf("it is of partition %s now", name)
	}
	return "it is of another partition now"
}

// Coming reports whether a switch that is not up is about to come up: this
// process holds its session, and it belongs to this partition.
func (h *hub) Coming(sw flow.DPID) bool {
	if !h.owns(sw) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.claimed[sw]
	return m != nil && h.master && h.standby[m.Session]
}
