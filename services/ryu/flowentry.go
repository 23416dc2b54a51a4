package ryu

import (
	"context"
	"fmt"
	"math"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// flowCommands are the last parts of the paths /stats/flowentry/{cmd}.
var flowCommands = map[string]flow.Command{
	"add": flow.Add, "modify": flow.Modify, "modify_strict": flow.ModifyStrict, "delete": flow.Delete, "delete_strict": flow.DeleteStrict,
}

// The cookies that Weft's own services write begin with a mark.
const (
	ownMark = flow.OwnerMask & (0xffff << 48)
	allBits = ^flow.Cookie(0)
)

var ownCookie = flow.NewCookie(0, 0, 0)

// readMod reads a flow-mod.
func readMod(d dict, command flow.Command) (flow.Mod, error) {
	m := flow.Mod{Command: command}
	e := &m.Entry
	table, err := tables.in(d, "table_id", 0)
	if err == nil && table > 0xff {
		err = bad("table_id: %d: want 0 to 255", table)
	}
	if err != nil {
		return m, err
	}
	e.Table = uint8(table)
	for _, n := range []struct {
		name string
		to   *uint16
	}{{"idle_timeout", &e.IdleTimeout}, {"hard_timeout", &e.HardTimeout}, {"priority", &e.Priority}, {"flags", &e.Flags}} {
		v, err := d.number(n.name, 0, math.MaxUint16)
		if err != nil {
			return m, err
		}
		*n.to = uint16(v)
	}
	for _, n := range []struct {
		name string
		to   *flow.Cookie
	}{{"cookie", &e.Cookie}, {"cookie_mask", &m.CookieMask}} {
		v, err := d.number(n.name, 0, math.MaxUint64)
		if err != nil {
			return m, err
		}
		*n.to = flow.Cookie(v)
	}
	if command == flow.Add && e.Cookie&ownMark == ownCookie {
		return m, bad("cookie: %d: begins with 0x5745, by which Weft knows its own entries; choose another", uint64(e.Cookie))
	}
	buffer := reserved{"OFP_", []named{{"NO_BUFFER", flow.BufferNone}}}
	if m.BufferID, err = buffer.in(d, "buffer_id", flow.BufferNone); err != nil {
		return m, err
	}
	port, err := ports.in(d, "out_port", uint32(flow.PortAny))
	if err != nil {
		return m, err
	}
	m.OutPort = flow.Port(port)
	if m.OutGroup, err = groups.in(d, "out_group", flow.GroupAny); err != nil {
		return m, err
	}
	in, err := d.dict("match")
	if err != nil {
		return m, err
	}
	if e.Match, err = readMatch(in); err != nil {
		return m, err
	}
	list, err := d.list("actions")
	if err != nil {
		return m, err
	}
	return m, readActions(list, e)
}

// modifyFlows carries out a flow-mod as in OpenFlow 1.3.5 §6.4, except that
// entries of Weft's services stay as they are: it refuses a strict command for
// one of them, and other commands skip them.
func (c *commands) modifyFlows(ctx context.Context, r *request, sw flow.DPID, m flow.Mod) error {
	own, err := c.affected(ctx, sw, &m, true)
	if err != nil {
		return err
	}
	if m.Command != flow.Modify && m.Command != flow.Delete {
		for _, o := range own {
			if o.Priority == m.Entry.Priority && o.Match == m.Entry.Match {
				return &failure{409, fmt.Sprintf("the entry of this match and priority in table %d is %v's: it stays as it is; choose another priority", o.Table, o.Cookie.Owner())}
			}
		}
		own = nil
	}
	mods := []flow.Mod{m}
	if len(own) > 0 {
		r.header.Set("Weft-Kept", fmt.Sprint(len(own)))
		if mods, err = c.others(ctx, sw, &m); err != nil {
			return err
		}
	}
	return c.applyMods(ctx, r, sw, mods)
}

// applyMods sends flow-mods to a switch, a chunk at a time.
func (c *commands) applyMods(ctx context.Context, r *request, sw flow.DPID, mods []flow.Mod) error {
	for len(mods) > 0 {
		n := min(len(mods), chunk)
		d := &flow.Decision{}
		for _, m := range mods[:n] {
			d.Flow(sw, m)
		}
		if err := c.apply(ctx, r, d); err != nil {
			return err
		}
		mods = mods[n:]
	}
	return nil
}

// chunk bounds the flow-mods that go to a switch at once.
const chunk = 1000

// others returns flow-mods that do what m does to each entry outside Weft's
// services, and to no other.
func (c *commands) others(ctx context.Context, sw flow.DPID, m *flow.Mod) ([]flow.Mod, error) {
	list, err := c.affected(ctx, sw, m, false)
	if err != nil {
		return nil, err
	}
	strict := flow.ModifyStrict
	if m.Command == flow.Delete {
		strict = flow.DeleteStrict
	}
	var mods []flow.Mod
	for _, e := range list {
		if e.Cookie&ownMark == ownCookie {
			continue
		}
		one := *m
		one.Command, one.CookieMask = strict, allBits
		one.OutPort, one.OutGroup = flow.PortAny, flow.GroupAny
		one.Entry.Table, one.Entry.Priority, one.Entry.Match, one.Entry.Cookie = e.Table, e.Priority, e.Match, e.Cookie
		mods = append(mods, one)
	}
	return mods, nil
}

// apply carries out a decision. If a switch refuses part of it, Ryu does not
// notice: the call succeeds, and a header reports it.
func (c *commands) apply(ctx context.Context, r *request, d *flow.Decision) error {
	result, err := c.net.apply(ctx, d)
	if err != nil {
		return err
	}
	return c.outcome(r, result)
}

func (c *commands) outcome(r *request, result *api.ApplyResult) error {
	for _, f := range result.GetFailures() {
		if f.Transient {
			return &failure{504, f.Text}
		}
		if c.reportRefusals {
			return &failure{400, f.Text}
		}
		r.note(f.Text)
		c.log.Warn("switch refuses a command", "dpid", f.Dpid, "path", r.path, "error", f.Text)
	}
	return nil
}

// unconfirmed reports switches that do not follow a request yet.
func (c *commands) unconfirmed(r *request, failures []*api.FirewallFailure) error {
	result := &api.ApplyResult{}
	for _, f := range failures {
		result.Failures = append(result.Failures, &api.ApplyFailure{Dpid: f.Dpid, Text: f.Text})
	}
	return c.outcome(r, result)
}
