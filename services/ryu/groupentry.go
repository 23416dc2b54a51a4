package ryu

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// changes are the commands for groups and meters.
var changes = map[string]flow.Command{"add": flow.Add, "modify": flow.Modify, "delete": flow.Delete}

// used are the groups and meters that entries of Weft's services use.
type used struct{ groups, meters map[uint32]bool }

// inUse reads the groups and meters that entries of Weft's services on a switch
// use.
func (c *commands) inUse(ctx context.Context, sw flow.DPID) (used, error) {
	u := used{map[uint32]bool{}, map[uint32]bool{}}
	list, err := c.affected(ctx, sw, &flow.Mod{Entry: flow.Entry{Table: flow.TableAll}, Command: flow.Modify}, true)
	if err != nil {
		return u, err
	}
	for i := range list {
		e := &list[i]
		if e.Meter != 0 {
			u.meters[e.Meter] = true
		}
		u.take(e.Apply)
		u.take(e.Write)
	}
	if len(u.groups) == 0 {
		return u, nil
	}
	resp, err := c.net.read(ctx, &api.ReadMultipartRequest{Dpid: sw.String(), Kind: api.Multipart_MULTIPART_GROUP_DESC})
	if err != nil && !refused(err) {
		return u, err
	}
	for before := 0; before != len(u.groups); { // groups that those groups lead to
		before = len(u.groups)
		for _, g := range resp.GetGroupDescs() {
			if !u.groups[g.Group] {
				continue
			}
			for _, b := range g.Buckets {
				for _, text := range b.Actions {
					u.take([]flow.Action{parseAction(text)})
				}
			}
		}
	}
	return u, nil
}

func (u *used) take(actions []flow.Action) {
	for _, a := range actions {
		if a.Kind == flow.ActionGroup {
			u.groups[a.Arg] = true
		}
	}
}

// targets returns the groups or meters that a change is for: the given one, or
// with all those on the switch that Weft does not use. The switch itself refuses
// to add an existing one.
func targets(r *request, what string, command flow.Command, id, all uint32, own map[uint32]bool, have func() ([]uint32, error)) ([]uint32, error) {
	if command == flow.Add || len(own) == 0 {
		return []uint32{id}, nil
	}
	if own[id] {
		return nil, &failure{409, fmt.Sprintf("%s %d is in use by Weft's own entries: it stays as it is", what, id)}
	}
	if id != all {
		return []uint32{id}, nil
	}
	list, err := have()
	r.header.Set("Weft-Kept", fmt.Sprint(len(own)))
	return slices.DeleteFunc(list, func(id uint32) bool { return own[id] }), err
}

func (c *commands) groupEntry(ctx context.Context, o *order) error {
	command, ok := changes[o.args["cmd"]]
	if !ok {
		return noCommand(o.args["cmd"])
	}
	g, err := readGroup(o.body)
	if err != nil {
		return err
	}
	u, err := c.inUse(ctx, o.sw)
	if err != nil {
		return err
	}
	ids, err := targets(o.request, "group", command, g.ID, flow.GroupAll, u.groups, func() (list []uint32, err error) {
		resp, err := c.net.read(ctx, &api.ReadMultipartRequest{Dpid: o.sw.String(), Kind: api.Multipart_MULTIPART_GROUP_DESC})
		for _, g := range resp.GetGroupDescs() {
			list = append(list, g.Group)
		}
		return list, err
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	d := &flow.Decision{}
	for _, id := range ids {
		g.ID = id
		d.Group(o.sw, flow.GroupMod{Command: command, Group: g})
	}
	return c.apply(ctx, o.request, d)
}

func readGroup(d dict) (flow.Group, error) {
	var g flow.Group
	kind, err := d.text("type", "ALL")
	if err != nil {
		return g, err
	}
	n := slices.Index(groupTypes, kind)
	if n < 0 {
		return g, bad("type: %.40q: want ALL, SELECT, INDIRECT or FF", kind)
	}
	g.Kind = flow.GroupKind(n)
	if g.ID, err = groups.in(d, "group_id", 0); err != nil {
		return g, err
	}
	list, err := d.list("buckets")
	if err != nil {
		return g, err
	}
	for i, v := range list {
		d, ok := v.(dict)
		if !ok {
			return g, bad("buckets: number %d: want a dictionary", i+1)
		}
		b, err := readBucket(d)
		if err != nil {
			return g, err
		}
		g.Buckets = append(g.Buckets, b)
	}
	return g, nil
}

func readBucket(d dict) (flow.Bucket, error) {
	var b flow.Bucket
	weight, err := d.number("weight", 0, math.MaxUint16)
	if err != nil {
		return b, err
	}
	port, err := ports.in(d, "watch_port", uint32(flow.PortAny))
	if err != nil {
		return b, err
	}
	b.Weight, b.WatchPort = uint16(weight), flow.Port(port)
	if b.WatchGroup, err = groups.in(d, "watch_group", flow.GroupAny); err != nil {
		return b, err
	}
	list, err := d.list("actions")
	if err != nil {
		return b, err
	}
	b.Actions, err = readPlain(list)
	return b, err
}

func (c *commands) meterEntry(ctx context.Context, o *order) error {
	command, ok := changes[o.args["cmd"]]
	if !ok {
		return noCommand(o.args["cmd"])
	}
	m, err := readMeter(o.body)
	if err != nil {
		return err
	}
	u, err := c.inUse(ctx, o.sw)
	if err != nil {
		return err
	}
	ids, err := targets(o.request, "meter", command, m.ID, flow.MeterAll, u.meters, func() (list []uint32, err error) {
		resp, err := c.net.read(ctx, &api.ReadMultipartRequest{Dpid: o.sw.String(), Kind: api.Multipart_MULTIPART_METER_CONFIG, Meter: flow.MeterAll})
		for _, m := range resp.GetMeterConfigs() {
			list = append(list, m.Meter)
		}
		return list, err
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	d := &flow.Decision{}
	for _, id := range ids {
		m.ID = id
		d.Meter(o.sw, flow.MeterMod{Command: command, Meter: m})
	}
	return c.apply(ctx, o.request, d)
}

func readMeter(d dict) (flow.Meter, error) {
	var m flow.Meter
	flags, ok := d["flags"].([]any)
	if v, given := d["flags"]; given && !ok {
		flags = []any{v}
	}
	for _, v := range flags {
		name, _ := v.(string)
		n := slices.Index(meterFlags, name)
		if n < 0 {
			return m, bad("flags: %.40q: want KBPS, PKTPS, BURST or STATS", fmt.Sprint(v))
		}
		m.Flags |= 1 << n
	}
	var err error
	if m.ID, err = meters.in(d, "meter_id", 0); err != nil {
		return m, err
	}
	list, err := d.list("bands")
	if err != nil {
		return m, err
	}
	for i, v := range list {
		d, ok := v.(dict)
		if !ok {
			return m, bad("bands: number %d: want a dictionary", i+1)
		}
		b, err := readBand(d)
		if err != nil {
			return m, err
		}
		m.Bands = append(m.Bands, b)
	}
	return m, nil
}

func readBand(d dict) (flow.Band, error) {
	var b flow.Band
	kind, err := d.text("type", "")
	if err != nil {
		return b, err
	}
	switch kind {
	case "DROP":
		b.Kind = flow.MeterDrop
	case "DSCP_REMARK":
		b.Kind = flow.MeterDSCPRemark
	case "EXPERIMENTER":
		return b, &failure{501, "bands: EXPERIMENTER: no switch is known that has such bands"}
	default:
		return b, bad("bands: type %.40q: want DROP or DSCP_REMARK", kind)
	}
	rate, err := d.number("rate", 0, math.MaxUint32)
	if err != nil {
		return b, err
	}
	burst, err := d.number("burst_size", 0, math.MaxUint32)
	if err != nil {
		return b, err
	}
	level, err := d.number("prec_level", 0, math.MaxUint8)
	b.Rate, b.BurstSize = uint32(rate), uint32(burst)
	if b.Kind == flow.MeterDSCPRemark {
		b.PrecLevel = uint8(level)
	}
	return b, err
}
