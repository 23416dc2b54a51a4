package flowrules

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// seen is an entry as a switch has reported it.
type seen struct {
	entry flow.Entry
	age   time.Duration // since it was installed
}

// flagsReported are the flags that switches keep with an entry; the others
// only say how a flow-mod is carried out (OpenFlow 1.3.5 §7.3.4.1).
const flagsReported = flow.FlagSendRem | flow.FlagNoPackets | flow.FlagNoBytes

// clockSlack is how far the end of a timed entry may be off: switches count whole
// seconds, and messages take time.
const clockSlack = 3 * time.Second

// same reports whether a switch's entry does what the wanted one with the same
// key asks. It ignores what switches are free to report differently: flags that
// they do not keep (OpenFlow 1.0 reports none), and the maximum length of an
// output to a port other than the controller.
func same(want, have *flow.Entry, version string) bool {
	w, h := *want, *have
	w.Flags &= flagsReported
	h.Flags &= flagsReported
	if version == "1.0" {
		h.Flags = w.Flags
	}
	w.Apply, h.Apply = reportedActions(w.Apply), reportedActions(h.Apply)
	w.Write, h.Write = reportedActions(w.Write), reportedActions(h.Write)
	return w.Same(&h)
}

// matchesReading is same for a rule's entry, read at now. The hard timeout of an
// entry with an expiry counts from its installation, so expiries are compared.
func (r *rule) matchesReading(have *seen, now time.Time, version string) bool {
	if r.expires.IsZero() {
		return r.same(&have.entry) || same(r.entry(), &have.entry, version)
	}
	if have.entry.HardTimeout == 0 {
		return false
	}
	end := now.Add(time.Duration(have.entry.HardTimeout)*time.Second - have.age)
	if d := end.Sub(r.expires); d < -clockSlack || d > clockSlack {
		return false
	}
	w := r.entry()
	w.HardTimeout = have.entry.HardTimeout
	return same(w, &have.entry, version)
}

// reportedActions returns actions as a switch reports them.
func reportedActions(list []flow.Action) []flow.Action {
	changes := func(a flow.Action) bool {
		return a.Kind == flow.ActionOutput && flow.Port(a.Arg) != flow.PortController && a.MaxLen != 0
	}
	if !slices.ContainsFunc(list, changes) {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		if changes(list[i]) {
			list[i].MaxLen = 0
		}
	}
	return list
}

// remaining returns the hard timeout that makes an entry installed at now end at
// the given time: whole seconds, rounded up, at least one because zero means
// never.
func remaining(expires, now time.Time) uint16 {
	s := (expires.Sub(now) + time.Second - 1) / time.Second
	return uint16(min(max(s, 1), 0xffff))
}
