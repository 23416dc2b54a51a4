// Package policy is the kit of services whose users make named objects that become flows,
// groups and meters of switches. A Kind says what the objects of a service mean. The kit
// checks and admits them, stores each before it is in force, compiles those that have
// changed, sends them to the switches until these have confirmed them, and answers the
// calls that set, delete and list them.
//
// Services import it; it knows none.
package policy

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// Message is the message of an object.
type Message interface {
	comparable
	proto.Message
	GetName() string
}

// Rules is what an object needs on a switch. The kit gives flows without a cookie that
// of the owner.
type Rules struct {
	Flows  []flow.Entry
	Groups []flow.Group
	Meters []flow.Meter
}

// Standing returns the state of a switch, as weft.BaselineFlows.Status does.
type Standing func(flow.DPID) (state string, err error)

// Kind describes the objects of a service. M is their message, and T the object that is
// made of it, a pointer; nobody writes to either once it is stored. T may be M.
type Kind[M Message, T comparable] struct {
	Owner             flow.Owner  // of the flows
	What, Many        string      // for errors: "gateway", "gateways"
	Set, Delete, List weft.Method // as the API names them; see Policy.Serve

	// Check makes an object of a message as it came, and Said the message of an object,
	// which is stored and listed; nil if the message is the object.
	Check func(M) (T, error)
	Said  func(T) M
	// Load makes an object of a stored message. Nil: Check.
	Load func(M) (T, error)
	// Admit checks an object beside the others and the network, and gives it what is
	// chosen for it; old is nil if it is new. The guard is locked. Nil: all are admitted.
	Admit func(now, old T) error
	// Changed follows a change, with the guard locked: old or now is nil if the object is
	// new or gone.
	Changed func(old, now T)

	// Compile returns what an object needs on a switch, a function of the object, the
	// switch and what the service knows. Nil: the service compiles all objects of a switch
	// together, by All.
	Compile func(sw *api.Switch, o T) Rules
	All     func(sw *api.Switch) Rules

	// Status returns the message of an object with its state, for answers. Nil: Said.
	Status func(o T, standing Standing) M

	// Reads are the parts of the network that the service reads beside switches. Network
	// follows their changes.
	Reads   nib.Parts
	Network func(nib.Change)

	Guard    *object.Guard // of the objects; nil: one of their own
	Bucket   string        // the objects' bucket; empty: "objects"
	Most     func() int    // how many objects there may be
	Raise    string        // the configuration key that Most returns
	Deadline func() time.Duration
}

// Policy is the objects of a kind and their flows.
type Policy[M Message, T comparable] struct {
	Objects *object.Store[T]
	Flows   *weft.BaselineFlows

	kind Kind[M, T]
	env  *weft.Env
}

// New reads the objects of earlier runs, and registers the handlers of events. The service's
// Spec is made by Declare.
func New[M Message, T comparable](ctx context.Context, env *weft.Env, k Kind[M, T]) (*Policy[M, T], error) {
	if k.Guard == nil {
		k.Guard = &object.Guard{}
	}
	if k.Load == nil {
		k.Load = k.Check
	}
	if k.Said == nil {
		k.Said = func(o T) M { return any(o).(M) }
	}
	kept, err := weft.State(env, k.bucket())
	if err != nil {
		return nil, err
	}
	p := &Policy[M, T]{kind: k, env: env}
	if k.Compile == nil {
		p.Flows = weft.NewBaselineFlows(env, k.Owner, func(sw *api.Switch) *api.SetStandingRequest { return k.request(sw, k.All(sw)) })
	} else {
		p.Flows = weft.NewObjectFlows(env, k.Owner, p.names, p.compile)
	}
	p.Objects = object.New(k.Guard, kept, object.Kind[T]{
		What: k.What, Many: k.Many, Most: k.Most, Raise: k.Raise,
		Name:    func(o T) string { return k.Said(o).GetName() },
		Format:  object.Messages(k.Load, k.Said),
		Changed: p.changed,
		Bad: func(name string, err error) {
			env.Log.Warn(k.What+" of an earlier run not read", "key", name, "error", err)
		},
	})
	if err := p.Objects.Load(ctx); err != nil {
		return nil, err
	}
	name := strings.ReplaceAll(k.Many, " ", "_")
	env.Metric.Gauge(name, strings.ToUpper(k.Many[:1])+k.Many[1:]+".", func() float64 { return float64(len(p.list(""))) })
	weft.OnChange(env, nib.Switches|k.Reads, func(c nib.Change) {
		if k.Network != nil {
			k.Network(c)
		}
		p.Flows.NetworkChanged(c)
	})
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) { p.Flows.FlowsObserved(e) })
	return p, p.serve()
}

func (k *Kind[M, T]) bucket() string {
	if k.Bucket == "" {
		return "objects"
	}
	return k.Bucket
}

// Run follows what other instances store, and keeps the flows on the switches, until ctx
// ends.
func (p *Policy[M, T]) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { p.Objects.Follow(ctx) })
	p.Flows.Run(ctx)
	work.Wait()
}

// changed follows a change of an object, with the guard locked.
func (p *Policy[M, T]) changed(old, now T) {
	if p.kind.Changed != nil {
		p.kind.Changed(old, now)
	}
	var none T
	o := now
	if now == none {
		o = old
	}
	p.Recompute(o)
}

// Recompute compiles an object again, on all switches, because something that it depends
// on has changed. The guard may be locked.
func (p *Policy[M, T]) Recompute(o T) {
	if p.kind.Compile == nil {
		p.Flows.Recompute()
		return
	}
	name := p.kind.Said(o).GetName()
	for _, sw := range weft.NIB(p.env).DPIDs() {
		p.Flows.RecomputeObjects(sw, name)
	}
}

func (p *Policy[M, T]) names(*api.Switch) []string {
	list := p.list("")
	names := make([]string, len(list))
	for i, o := range list {
		names[i] = p.kind.Said(o).GetName()
	}
	return names
}

func (p *Policy[M, T]) compile(sw *api.Switch, name string) *api.SetStandingRequest {
	for _, o := range p.list(name) {
		return p.kind.request(sw, p.kind.Compile(sw, o))
	}
	return nil
}

// request returns the request that gives a switch some rules.
func (k *Kind[M, T]) request(sw *api.Switch, r Rules) *api.SetStandingRequest {
	dpid, err := flow.ParseDPID(sw.GetDpid())
	if err != nil {
		return nil
	}
	req := &api.SetStandingRequest{}
	for i := range r.Flows {
		e := &r.Flows[i]
		if e.Cookie == 0 {
			e.Cookie = flow.NewCookie(k.Owner, 0, 0)
		}
		req.Flows = append(req.Flows, api.NewFlowEntry(dpid, e))
	}
	for i := range r.Groups {
		req.Groups = append(req.Groups, api.NewGroup(dpid, &r.Groups[i]))
	}
	for i := range r.Meters {
		req.Meters = append(req.Meters, api.NewMeter(dpid, &r.Meters[i]))
	}
	return req
}

// list returns the objects by name, or the one of a name.
func (p *Policy[M, T]) list(name string) []T {
	p.kind.Guard.Lock()
	defer p.kind.Guard.Unlock()
	if name == "" {
		return append([]T(nil), p.Objects.List()...)
	}
	var none T
	if o := p.Objects.Get(name); o != none {
		return []T{o}
	}
	return nil
}

// set stores the object of a message, and returns it as it is then.
func (p *Policy[M, T]) set(ctx context.Context, m M) (now M, err error) {
	if err := api.CheckName("name", m.GetName()); err != nil {
		return now, api.Errorf(codes.InvalidArgument, "%s: %w", p.kind.What, err)
	}
	o, err := p.kind.Check(proto.CloneOf(m))
	if err != nil {
		return now, api.Errorf(codes.InvalidArgument, "%s %s: %w", p.kind.What, m.GetName(), err)
	}
	old, is, err := p.Objects.Change(ctx, m.GetName(), func(old T) (T, error) {
		if p.kind.Admit == nil {
			return o, nil
		}
		return o, p.kind.Admit(o, old)
	})
	if err != nil {
		return now, err
	}
	p.settle(ctx, old != is)
	return p.status(is), nil
}

// remove deletes an object and reports whether there was one.
func (p *Policy[M, T]) remove(ctx context.Context, name string) (bool, error) {
	if err := api.CheckName("name", name); err != nil {
		return false, api.Errorf(codes.InvalidArgument, "%s: %w", p.kind.What, err)
	}
	var none T
	old, err := p.Objects.Remove(ctx, name)
	p.settle(ctx, err == nil && old != none)
	return old != none, err
}

// settle waits for the switches to confirm a change.
func (p *Policy[M, T]) settle(ctx context.Context, changed bool) {
	if changed {
		p.Flows.SettleWithin(ctx, p.kind.Deadline(), p.kind.Many)
	}
}

func (p *Policy[M, T]) status(o T) M {
	if p.kind.Status == nil {
		return p.kind.Said(o)
	}
	return p.kind.Status(o, p.Flows.Status)
}
