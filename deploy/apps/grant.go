package apps

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Grant is the rights that a plan gives an app.
type Grant struct {
	May              func(name string) bool // a method, service.Method, or an operation of decisions; nil: all
	Switches         flow.SwitchList        // on which it may change something; none is all
	Tables           []int                  // in which it may have entries; none is all
	Entries          int                    // that it may have at once
	PacketsPerSecond int                    // that it may have switches send
}

// The operations of decisions, as plans give them.
const (
	opAddFlow    = "add_flow"
	opDeleteFlow = "delete_flow"
	opPacketOut  = "packet_out"
	opGroups     = "groups"
)

// refusal is an error that says, in a word, why an app was refused.
type refusal struct {
	reason string
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refusedFor(reason, form string, args ...any) error {
	return &refusal{reason, api.Errorf(codes.PermissionDenied, form, args...)}
}

// reasonOf returns why an app was refused; empty if it was not.
func reasonOf(err error) string {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return r.reason
	}
	return ""
}

// permit returns an error for a call that its caller may not make, and marks
// the flow entries in a permitted call as the caller's. Read-only calls are
// open to all.
func (c *calls) permit(v visitor, method string, req proto.Message) error {
	if reads(method) || c.grant == nil {
		return nil
	}
	denied := func(reason, form string, args ...any) error {
		return refusedFor(reason, method+": "+form, args...)
	}
	if v.app == "" {
		return denied("unnamed", "without the name of an app of the plan only what reads may be called: attach as one, or send Weft-App: NAME")
	}
	g := c.grant(v.app)
	if g.May != nil && !g.May(method) {
		return denied("method", "the plan does not give it to app %s; add it to apps.%s.may", v.app, v.app)
	}
	switch req := req.(type) {
	case *api.AddFlowsRequest:
		req.Most = uint32(g.Entries)
		if g.Entries == 0 {
			return denied("entries", "the plan gives app %s no entries; raise apps.%s.entries", v.app, v.app)
		}
		return g.flows(v.app, method, req.GetFlows())
	case *api.DeleteFlowsRequest:
		if req.GetAllOf() != "" {
			return denied("method", "all_of is the operator's: an app lists its own entries")
		}
		return g.flows(v.app, method, req.GetFlows())
	case *api.SetHoldRequest:
		if req.Hold == nil {
			req.Hold = &api.HostHold{}
		}
		if err := ownStage(v.app, method, &req.Hold.Stage); err != nil {
			return err
		}
	case *api.DeleteHoldRequest:
		return ownStage(v.app, method, &req.Stage)
	case *api.ApproveHostRequest:
		return ownStage(v.app, method, &req.Stage)
	case *api.RevokeHostRequest:
		return ownStage(v.app, method, &req.Stage)
	}
	if len(g.Switches.Ranges) == 0 {
		return nil
	}
	return g.onSwitches(v.app, method, req)
}

// onSwitches checks that a request names the switches on which it changes
// something, in each of the fields that the method's declaration lists, and that
// the app has all of them. What lists none is about the whole network.
func (g *Grant) onSwitches(app, method string, req proto.Message) error {
	whole := refusedFor("switch", "%s: it is about the whole network, and the plan gives app %s some switches only: %s", method, app, strings.Join(g.Switches.Items(), ", "))
	paths := api.RulesOf(method).GetSwitches()
	if len(paths) == 0 {
		return whole
	}
	for _, path := range paths {
		named := namedSwitches(req.ProtoReflect(), path)
		if len(named) == 0 {
			return whole
		}
		for _, dpid := range named {
			if err := g.onSwitch(app, dpid); err != nil {
				return refusedFor("switch", "%s: %s: %w", method, path, err)
			}
		}
	}
	return nil
}

// flows checks entries of a request of an app, and marks them as its own.
func (g *Grant) flows(app, method string, list []*api.FlowEntry) error {
	for i, f := range list {
		if f == nil {
			continue
		}
		err := g.onSwitch(app, f.GetDpid())
		if err == nil {
			err = g.inTable(app, int(f.GetTable()))
		}
		if err != nil {
			return refusedFor(reasonOf(err), "%s: entry %d: %w", method, i, err)
		}
		f.Owner = api.AppOwner(app)
	}
	return nil
}

// ownStage sets the stage of an app's request: the app itself.
func ownStage(app, method string, stage *string) error {
	if *stage != "" && *stage != app {
		return api.Errorf(codes.PermissionDenied, "%s: stage %.60q is not app %s: leave it empty", method, *stage, app)
	}
	*stage = app
	return nil
}

func (g *Grant) onSwitch(app, dpid string) error {
	if len(g.Switches.Ranges) == 0 {
		return nil
	}
	if sw, err := flow.ParseDPID(dpid); err == nil && g.Switches.Names(sw) {
		return nil
	}
	return refusedFor("switch", "the plan does not give app %s switch %.40q; its switches are %s", app, dpid, strings.Join(g.Switches.Items(), ", "))
}

func (g *Grant) inTable(app string, table int) error {
	if len(g.Tables) == 0 || slices.Contains(g.Tables, table) {
		return nil
	}
	return refusedFor("table", "the plan does not give app %s table %d; its tables are %v", app, table, g.Tables)
}

// namedSwitches returns the switches that a message names in a field, given by
// its path with dots; none if one of its places is empty.
func namedSwitches(m protoreflect.Message, path string) (list []string) {
	name, rest, deeper := strings.Cut(path, ".")
	f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if f == nil || !m.Has(f) {
		return nil
	}
	var values []protoreflect.Value
	if f.IsList() {
		for i := range m.Get(f).List().Len() {
			values = append(values, m.Get(f).List().Get(i))
		}
	} else {
		values = append(values, m.Get(f))
	}
	for _, v := range values {
		if !deeper {
			list = append(list, v.String())
			continue
		}
		below := namedSwitches(v.Message(), rest)
		if len(below) == 0 {
			return nil
		}
		list = append(list, below...)
	}
	return list
}

// allowance is an app's use of its grant: the packets of this second and the
// flow entries of its decisions.
type allowance struct {
	mu      sync.Mutex // guards what follows
	left    float64
	at      time.Time
	entries map[entryOf]time.Time // when each expires; zero: on its deletion
	groups  map[groupOf]struct{}
}

type entryOf struct {
	sw  flow.DPID
	key flow.EntryKey
}

type groupOf struct {
	sw flow.DPID
	id uint32
}

// decide checks an app's decisions on a batch of packets against its grant, and
// marks its flow entries as its own. One refusal refuses the whole batch;
// packets beyond the rate are omitted, and over counts them.
func (l *allowance) decide(app string, g *Grant, list []flow.Decision, now time.Time, over func()) error {
	may := func(operation string) error {
		if g.May == nil || g.May(operation) {
			return nil
		}
		return refusedFor("operation", "the plan does not give app %s the operation %s; add it to apps.%s.may", app, operation, app)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = min(float64(g.PacketsPerSecond), l.left+now.Sub(l.at).Seconds()*float64(g.PacketsPerSecond))
	l.at = now
	for i := range list {
		d := &list[i]
		kept := d.Ops[:0]
		for _, op := range d.Ops {
			var err error
			leave := false
			switch op.Kind {
			case flow.OpFlow:
				err = l.flow(app, g, op.Switch, &d.Flows[op.Index], now, may)
			case flow.OpGroup:
				err = l.group(app, g, op.Switch, &d.Groups[op.Index], may)
			case flow.OpPacketOut:
				ownGroups(flow.MarkOf(app), d.Outs[op.Index].Actions)
				if err = may(opPacketOut); err == nil && l.left < 1 {
					leave = true
					over()
				} else {
					l.left--
				}
			}
			if err == nil && op.Kind != flow.OpFence {
				err = g.onSwitch(app, op.Switch.String())
			}
			if err != nil {
				return err
			}
			if !leave {
				kept = append(kept, op)
			}
		}
		d.Ops = kept
	}
	return nil
}

// flow checks one flow-mod of a decision; mu is held.
func (l *allowance) flow(app string, g *Grant, sw flow.DPID, m *flow.Mod, now time.Time, may func(string) error) error {
	e := &m.Entry
	mark := flow.MarkOf(app)
	e.Cookie = flow.AppCookie(mark, e.Cookie)
	ownGroups(mark, e.Apply)
	ownGroups(mark, e.Write)
	at := entryOf{sw, e.Key()}
	if m.Command != flow.Add {
		if err := may(opDeleteFlow); err != nil {
			return err
		}
		delete(l.entries, at)
		return nil
	}
	if err := may(opAddFlow); err != nil {
		return err
	}
	if err := g.inTable(app, int(e.Table)); err != nil {
		return err
	}
	if e.Reserved() {
		return refusedFor("reserved", "app %s: table %d, priority %d is reserved to Weft's services: want another priority, or table 0", app, e.Table, e.Priority)
	}
	if l.entries == nil {
		l.entries = map[entryOf]time.Time{}
	}
	if _, there := l.entries[at]; !there && len(l.entries) >= g.Entries {
		for k, end := range l.entries {
			if !end.IsZero() && now.After(end) {
				delete(l.entries, k)
			}
		}
		if len(l.entries) >= g.Entries {
			return &refusal{"entries", api.Errorf(codes.ResourceExhausted, "app %s has %d entries; raise apps.%s.entries, or give entries time-outs", app, len(l.entries), app)}
		}
	}
	var end time.Time
	for _, seconds := range []uint16{e.IdleTimeout, e.HardTimeout} {
		if t := now.Add(time.Duration(seconds) * time.Second); seconds > 0 && (end.IsZero() || t.Before(end)) {
			end = t
		}
	}
	if !end.IsZero() {
		e.Flags |= flow.FlagSendRem // to learn when its place is free
	}
	l.entries[at] = end
	return nil
}

// group checks one change of a group, and gives it a number of the app's; mu is
// held.
func (l *allowance) group(app string, g *Grant, sw flow.DPID, m *flow.GroupMod, may func(string) error) error {
	if err := may(opGroups); err != nil {
		return err
	}
	if m.Group.ID > flow.AppGroupMax {
		return refusedFor("reserved", "app %s: group %d: want 1 to %d", app, m.Group.ID, flow.AppGroupMax)
	}
	mark := flow.MarkOf(app)
	m.Group.ID = flow.AppGroup(mark, m.Group.ID)
	for i := range m.Group.Buckets {
		ownGroups(mark, m.Group.Buckets[i].Actions)
	}
	at := groupOf{sw, m.Group.ID}
	switch _, there := l.groups[at]; {
	case m.Command == flow.Delete:
		delete(l.groups, at)
	case !there && len(l.groups) >= g.Entries:
		return &refusal{"entries", api.Errorf(codes.ResourceExhausted, "app %s has %d groups; raise apps.%s.entries", app, len(l.groups), app)}
	case !there:
		if l.groups == nil {
			l.groups = map[groupOf]struct{}{}
		}
		l.groups[at] = struct{}{}
	}
	return nil
}

// ownGroups makes actions refer to the app's own groups.
func ownGroups(mark flow.AppMark, list []flow.Action) {
	for i := range list {
		if list[i].Kind == flow.ActionGroup && list[i].Arg <= flow.AppGroupMax {
			list[i].Arg = flow.AppGroup(mark, list[i].Arg)
		}
	}
}
