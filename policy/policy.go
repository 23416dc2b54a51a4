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
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

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
}

// Rules is what an object needs on a switch. The kit gives flows without a cookie that
// of the owner.
type Rules struct {
	Flows  []flow.Entry
	Groups []flow.Group
	Meters []flow.Meter
}

// Kind describes the objects of a service. M is their message, and T the object that is
// made of it, a pointer; nobody writes to either once it is stored. T may be M.
type Kind[M Message, T comparable] struct {
	Owner      flow.Owner // of the flows
	What, Many string     // for errors: "gateway", "gateways"

	// Set, Delete and List are the methods of the API, with messages of these forms: Set has
	// a field with the object and returns it, Delete has the fields that name an object and
	// returns deleted, and List, which may have fields of those wanted, returns a list of
	// objects. Set and Delete may have dry_run, with which they change nothing, and an object
	// effect, which Set returns: added, replaced or unchanged. The service itself answers
	// those that are nil.
	Set, Delete, List weft.Method

	// Name returns the name of the object of a message, or what is wrong with it. In a message
	// for Delete only the fields that make the name are set. Nil: its field name.
	Name func(M) (string, error)
	// Check makes an object of a message as it came, and Said the message of an object,
	// which is stored and listed; nil if the message is the object.
	Check func(M) (T, error)
	Said  func(T) M
	// Load makes an object of a stored message. Nil: Check.
	Load func(M) (T, error)
	// Format is how objects are stored. The zero Format: as their messages.
	Format object.Format[T]
	// Bad receives stored objects that cannot be read. Nil: they are logged.
	Bad func(name string, err error)
	// Admit checks an object beside the others and the network, and gives it what is
	// chosen for it; old is nil if it is new. The guard is locked. Nil: all are admitted.
	Admit func(now, old T) error
	// Release checks that Delete may delete an object, with the guard locked. Nil: it may.
	Release func(old T) error
	// Changed follows a change, with the guard locked: old or now is nil if the object is
	// new or gone.
	Changed func(old, now T)
	// Unchanged follows a call that leaves an object as it is, with the guard locked.
	Unchanged func(T)

	// Compile returns what an object needs on a switch, a function of the object, the
	// switch and what the service knows. Nil: the service compiles all objects of a switch
	// together, by All. If both are nil, the objects have no flows.
	Compile func(sw *api.Switch, o T) Rules
	All     func(sw *api.Switch) Rules
	// On returns the switches to whose flows an object contributes, with the guard locked.
	// Only these are compiled by All when it changes. Nil: all.
	On func(T) []flow.DPID

	// Order is that of lists. Nil: by name.
	Order func(a, b T) int
	// Status returns the message of an object with its state, for answers. Nil: Said.
	Status func(T) M

	// Hold returns how much longer a switch keeps what it has of an earlier run, because All
	// or Compile may lack some of it; 0 if that may be replaced. It is called again then, and
	// after each Recompute. Observed follows what switches have. Nil: nothing holds.
	Hold     func(sw *api.Switch) time.Duration
	Observed func(*api.FlowsObserved)

	// Reads are the parts of the network that the service reads beside switches. Network
	// follows their changes. With roles, a switch keeps the flows of an earlier run until
	// the roles of its ports are settled.
	Reads   nib.Parts
	Network func(nib.Change)

	Guard    *object.Guard // of the objects; nil: one of their own
	Bucket   string        // the objects' bucket; empty: "objects"
	Most     func() int    // how many objects there may be
	Raise    string        // the configuration key that Most returns
	Deadline func() time.Duration
	Count    func() int // of objects, for the metric; nil: all
	// Settle waits until changes are in force. Nil: until switches have confirmed the flows.
	Settle func(context.Context)
}

// Policy is the objects of a kind and their flows.
type Policy[M Message, T comparable] struct {
	*object.Store[T]

	kind  Kind[M, T]
	env   *weft.Env           // nil until the policy is served, as flows
	flows *weft.BaselineFlows // of the objects; nil: they have none
}

// New returns a policy without objects.
func New[M Message, T comparable](k Kind[M, T]) *Policy[M, T] {
	p := &Policy[M, T]{kind: k}
	of := &p.kind
	if k.Guard == nil {
		of.Guard = &object.Guard{}
	}
	if k.Load == nil {
		of.Load = k.Check
	}
	if k.Said == nil {
		of.Said = func(o T) M { return any(o).(M) }
	}
	if k.Name == nil {
		of.Name = func(m M) (string, error) {
			name := any(m).(interface{ GetName() string }).GetName()
			return name, api.CheckName("name", name)
		}
	}
	if k.Bad == nil {
		of.Bad = func(name string, err error) {
			p.env.Log.Warn(k.What+" of an earlier run not read", "key", name, "error", err)
		}
	}
	if k.Format.Parse == nil {
		of.Format = object.Messages(of.Load, of.Said)
	}
	if k.Count == nil {
		of.Count = func() int { return len(p.list()) }
	}
	p.Store = object.New(of.Guard, nil, object.Kind[T]{
		What: k.What, Many: k.Many, Most: k.Most, Raise: k.Raise, Name: p.name,
		Format: of.Format, Changed: p.changed, Bad: of.Bad,
	})
	return p
}

// name returns the name of an object.
func (p *Policy[M, T]) name(o T) string {
	name, _ := p.kind.Name(p.kind.Said(o)) // checked
	return name
}

// Served is a policy of any kind.
type Served interface {
	open(env *weft.Env) error
	serve(ctx context.Context) error
	Run(ctx context.Context)
}

// Serve loads the objects of earlier runs of a service's policies. It answers the calls and
// follows the events that Declare lists; the service calls Run at the end.
func Serve(ctx context.Context, env *weft.Env, policies ...Served) error {
	for _, p := range policies {
		if err := p.open(env); err != nil {
			return err
		}
	}
	for _, p := range policies {
		if err := p.serve(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy[M, T]) open(env *weft.Env) error {
	p.env = env
	bucket, err := weft.State(env, p.kind.bucket())
	if err == nil {
		p.Open(bucket)
	}
	return err
}

func (p *Policy[M, T]) serve(ctx context.Context) error {
	if err := p.Load(ctx); err != nil {
		return err
	}
	k, env := &p.kind, p.env
	name := strings.ReplaceAll(strings.ToLower(k.Many), " ", "_")
	env.Metric.Gauge(name, strings.ToUpper(k.Many[:1])+k.Many[1:]+".", func() float64 { return float64(k.Count()) })
	switch {
	case k.Compile != nil:
		p.flows = weft.NewObjectFlows(env, k.Owner, p.names, p.compile)
	case k.All != nil:
		p.flows = weft.NewBaselineFlows(env, k.Owner, func(sw *api.Switch) *api.SetStandingRequest { return k.request(sw, k.All(sw)) })
	default:
		return p.answer()
	}
	weft.OnChange(env, k.reads(), func(c nib.Change) {
		if k.Network != nil {
			k.Network(c)
		}
		p.flows.NetworkChanged(c)
	})
	if k.Hold != nil {
		p.flows.OnHold(k.Hold)
	}
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) {
		if k.Observed != nil {
			k.Observed(e)
		}
		p.flows.FlowsObserved(e)
	})
	return p.answer()
}

// reads returns the parts of the network that a service of the kind reads.
func (k *Kind[M, T]) reads() nib.Parts {
	if k.Reads&nib.Roles != 0 {
		return nib.Switches | nib.Settled | k.Reads
	}
	return nib.Switches | k.Reads
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
	work.Go(func() { p.Follow(ctx) })
	if p.flows != nil {
		p.flows.Run(ctx)
	}
	work.Wait()
}

// changed follows a change of an object, with the guard locked.
func (p *Policy[M, T]) changed(old, now T) {
	if p.kind.Changed != nil {
		p.kind.Changed(old, now)
	}
	var none T
	switch {
	case p.flows == nil:
	case p.kind.Compile == nil && p.kind.On == nil:
		p.flows.Recompute()
	case p.kind.Compile == nil:
		for _, o := range []T{old, now} {
			if o != none {
				if list := p.kind.On(o); len(list) > 0 {
					p.flows.Recompute(list...)
				}
			}
		}
	case now == none:
		p.recompute(old)
	default:
		p.recompute(now)
	}
}

// recompute compiles an object again, on all switches.
func (p *Policy[M, T]) recompute(o T) {
	name := p.name(o)
	for _, sw := range weft.NIB(p.env).DPIDs() {
		p.flows.RecomputeObjects(sw, name)
	}
}

// Recompute compiles the objects of some switches again, or of all if none is named,
// because something that they depend on has changed. The guard may be locked.
func (p *Policy[M, T]) Recompute(switches ...flow.DPID) {
	if p.flows != nil {
		p.flows.Recompute(switches...)
	}
}

// Flows returns the flows of the objects, once the policy is served.
func (p *Policy[M, T]) Flows() *weft.BaselineFlows { return p.flows }

func (p *Policy[M, T]) names(*api.Switch) []string {
	list := p.list()
	names := make([]string, len(list))
	for i, o := range list {
		names[i] = p.name(o)
	}
	return names
}

func (p *Policy[M, T]) compile(sw *api.Switch, name string) *api.SetStandingRequest {
	p.kind.Guard.Lock()
	o := p.Store.Get(name)
	p.kind.Guard.Unlock()
	var none T
	if o == none {
		return nil
	}
	return p.kind.request(sw, p.kind.Compile(sw, o))
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

// list returns the objects in order.
func (p *Policy[M, T]) list() []T {
	p.kind.Guard.Lock()
	defer p.kind.Guard.Unlock()
	list := slices.Clone(p.Store.List())
	if p.kind.Order != nil {
		slices.SortStableFunc(list, p.kind.Order)
	}
	return list
}

// Set stores the object of a message, and returns it as it was before and is then.
func (p *Policy[M, T]) Set(ctx context.Context, m M) (old, now T, err error) {
	return p.set(ctx, m, p.change)
}

func (p *Policy[M, T]) set(ctx context.Context, m M, change changer[T]) (old, now T, err error) {
	var none M
	if m == none {
		return old, old, api.Errorf(codes.InvalidArgument, "%s: missing", p.kind.What)
	}
	name, err := p.kind.Name(m)
	if err != nil {
		return old, old, api.Errorf(codes.InvalidArgument, "%s: %w", p.kind.What, err)
	}
	o, err := p.kind.Check(proto.CloneOf(m))
	if err != nil {
		return old, old, api.Errorf(codes.InvalidArgument, "%s %s: %w", p.kind.What, name, err)
	}
	return change(ctx, name, func(old T) (T, error) {
		if p.kind.Admit == nil {
			return o, nil
		}
		return o, p.kind.Admit(o, old)
	})
}

// Delete deletes the object that a message names, and returns it; nil if there was none.
func (p *Policy[M, T]) Delete(ctx context.Context, m M) (old T, err error) {
	return p.delete(ctx, m, p.change)
}

func (p *Policy[M, T]) delete(ctx context.Context, m M, change changer[T]) (old T, err error) {
	name, err := p.kind.Name(m)
	if err != nil {
		return old, api.Errorf(codes.InvalidArgument, "%s: %w", p.kind.What, err)
	}
	old, _, err = change(ctx, name, func(old T) (none T, err error) {
		if p.kind.Release != nil && old != none {
			err = p.kind.Release(old)
		}
		return none, err
	})
	return old, err
}

// change is Store.Change for a call.
func (p *Policy[M, T]) change(ctx context.Context, name string, admit func(old T) (T, error)) (old, now T, err error) {
	var none T
	old, now, err = p.Change(ctx, name, admit)
	if err == nil && old == now && now != none && p.kind.Unchanged != nil {
		p.kind.Guard.Lock()
		defer p.kind.Guard.Unlock()
		p.kind.Unchanged(now)
	}
	return old, now, err
}

// changer is Store.Change, or does as that for a request.
type changer[T comparable] func(ctx context.Context, name string, admit func(old T) (T, error)) (old, now T, err error)

// changes returns how a request changes objects: until that is in force, or, for a dry run,
// not at all.
func (p *Policy[M, T]) changes(req any) changer[T] {
	if r, ok := req.(interface{ GetDryRun() bool }); ok && r.GetDryRun() {
		return p.Try
	}
	return func(ctx context.Context, name string, admit func(old T) (T, error)) (old, now T, err error) {
		if old, now, err = p.change(ctx, name, admit); err == nil && old != now {
			p.Settle(ctx)
		}
		return old, now, err
	}
}

// Apply changes an object for a request of another method as Set does, and returns the
// answer of Set: admit returns what is to replace the object, which is nil if there is none.
func (p *Policy[M, T]) Apply(ctx context.Context, req any, name string, admit func(old T) (T, error)) (m M, err error) {
	old, now, err := p.changes(req)(ctx, name, admit)
	if err != nil {
		return m, err
	}
	return p.answerTo(old, now), nil
}

// answerTo returns the message of an object with its state and what has become of it.
func (p *Policy[M, T]) answerTo(old, now T) M {
	m := p.status(now)
	effect := m.ProtoReflect().Descriptor().Fields().ByName("effect")
	if effect == nil {
		return m
	}
	var none T
	word := "replaced"
	switch old {
	case none:
		word = "added"
	case now:
		word = "unchanged"
	}
	m = proto.CloneOf(m)
	m.ProtoReflect().Set(effect, protoreflect.ValueOfString(word))
	return m
}

// Settle waits until the changes so far are in force.
func (p *Policy[M, T]) Settle(ctx context.Context) {
	if p.kind.Settle != nil {
		p.kind.Settle(ctx)
	} else {
		p.flows.SettleWithin(ctx, p.kind.Deadline(), p.kind.Many)
	}
}

func (p *Policy[M, T]) status(o T) M {
	if p.kind.Status == nil {
		return p.kind.Said(o)
	}
	return p.kind.Status(o)
}
