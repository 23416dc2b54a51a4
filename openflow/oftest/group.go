package oftest

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// group is a group with its counters.
type group struct {
	flow.Group
	since   time.Time
	packets openflow.Counter
	buckets []openflow.Counter
}

// bucketsMax bounds the buckets of a group: more, with an action each, do not fit a
// message.
const bucketsMax = 2047

// groupMod handles a group-mod (§6.5, §7.3.4.2).
func (ct *contents) groupMod(c *conn, msg []byte) error {
	if c.version == openflow.V10 {
		return refuse(openflow.ErrBadRequest, openflow.BadRequestBadType)
	}
	var m flow.GroupMod
	if err := c.version.DecodeGroupMod(msg, &m); err != nil {
		return err
	}
	failed := func(code uint16) error { return refuse(openflow.ErrGroupModFailed, code) }
	id := m.Group.ID
	if m.Command == flow.Delete {
		return ct.deleteGroups(id)
	}
	old := ct.groups[id]
	switch {
	case m.Command == flow.Add && old != nil:
		return failed(openflow.GroupModFailedGroupExists)
	case m.Command == flow.Modify && old == nil:
		return failed(openflow.GroupModFailedUnknownGroup)
	case id > groupMax:
		return failed(openflow.GroupModFailedInvalidGroup)
	case m.Command == flow.Add && ct.cfg.MaxGroups > 0 && len(ct.groups) >= ct.cfg.MaxGroups:
		return failed(openflow.GroupModFailedOutOfGroups)
	}
	if err := ct.checkGroup(&m.Group); err != nil {
		return err
	}
	g := &group{Group: m.Group, since: ct.now, buckets: make([]openflow.Counter, len(m.Group.Buckets))}
	if old != nil {
		g.since = old.since
		g.packets = old.packets
		ct.changed("group", old.Group, g.Group)
	} else {
		ct.changed("group", nil, g.Group)
	}
	ct.groups[id] = g
	return nil
}

// checkGroup checks a group that is to be added or to replace another.
func (ct *contents) checkGroup(g *flow.Group) error {
	failed := func(code uint16) error { return refuse(openflow.ErrGroupModFailed, code) }
	switch {
	case g.Kind > flow.GroupKindFastFailover:
		return failed(openflow.GroupModFailedBadType)
	case len(g.Buckets) > bucketsMax:
		return failed(openflow.GroupModFailedOutOfBuckets)
	case g.Kind == flow.GroupKindIndirect && len(g.Buckets) != 1:
		return failed(openflow.GroupModFailedInvalidGroup)
	}
	for i := range g.Buckets {
		b := &g.Buckets[i]
		switch {
		case b.Weight != 0 && g.Kind != flow.GroupKindSelect:
			return failed(openflow.GroupModFailedInvalidGroup)
		case g.Kind == flow.GroupKindFastFailover && !watches(b):
			return failed(openflow.GroupModFailedInvalidGroup)
		case b.WatchGroup != flow.GroupAny && b.WatchGroup > groupMax:
			return failed(openflow.GroupModFailedBadWatch)
		}
		if err := ct.checkBucket(g, b); err != nil {
			return err
		}
	}
	return nil
}

// checkBucket checks the actions of a bucket; groups that they lead to exist
// and do not lead back.
func (ct *contents) checkBucket(g *flow.Group, b *flow.Bucket) error {
	for i := range b.Actions {
		a := &b.Actions[i]
		if a.Kind != flow.ActionGroup {
			if err := ct.checkAction(a, false); err != nil {
				return err
			}
			continue
		}
		if a.Arg == g.ID || ct.leadsTo(a.Arg, g.ID) {
			return refuse(openflow.ErrGroupModFailed, openflow.GroupModFailedLoop)
		}
		if err := ct.checkAction(a, false); err != nil {
			return err
		}
	}
	return nil
}

// leadsTo reports whether group from leads to group to, by however many others.
func (ct *contents) leadsTo(from, to uint32) bool {
	g := ct.groups[from]
	if g == nil {
		return false
	}
	for _, b := range g.Buckets {
		for i := range b.Actions {
			if a := &b.Actions[i]; a.Kind == flow.ActionGroup && (a.Arg == to || ct.leadsTo(a.Arg, to)) {
				return true
			}
		}
	}
	return false
}

// deleteGroups deletes a group, or all, with the flow entries that lead to it.
// One that another group leads to stays (OFPGFC_CHAINING_CHECKS).
func (ct *contents) deleteGroups(id uint32) error {
	all := id == flow.GroupAll
	if !all {
		if ct.groups[id] == nil {
			return nil
		}
		for other := range ct.groups {
			if ct.groups[other].refers(id) {
				return refuse(openflow.ErrGroupModFailed, openflow.GroupModFailedChainedGroup)
			}
		}
	}
	ct.removeUsing(func(e *entry) bool {
		uses := func(a flow.Action) bool { return a.Kind == flow.ActionGroup && (all || a.Arg == id) }
		return slices.ContainsFunc(e.Apply, uses) || slices.ContainsFunc(e.Write, uses)
	}, openflow.RemovedGroupDelete)
	for other, g := range ct.groups {
		if all || other == id {
			ct.changed("group", g.Group, nil)
		}
	}
	if all {
		clear(ct.groups)
	} else {
		delete(ct.groups, id)
	}
	return nil
}

// refers reports whether a bucket of g leads to group id.
func (g *group) refers(id uint32) bool {
	for _, b := range g.Buckets {
		if slices.ContainsFunc(b.Actions, func(a flow.Action) bool { return a.Kind == flow.ActionGroup && a.Arg == id }) {
			return true
		}
	}
	return false
}

// watches reports whether a bucket's liveness depends on anything.
func watches(b *flow.Bucket) bool {
	return b.WatchPort != flow.PortAny || b.WatchGroup != flow.GroupAny
}
