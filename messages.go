package weft

import (
	"context"
	"encoding"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// Handle answers a method. The handler runs on its caller's goroutine, so
// several may run at once. A failed remote call may have run, and may come
// twice: calls are idempotent.
func Handle[Req, Resp any](env *Env, m api.Method[Req, Resp], h func(context.Context, *Req) (*Resp, error)) {
	HandleAny(env, m, api.AnswerBy(m, h).Call)
}

// HandleAny is Handle for a method whose types are not known at compile time.
func HandleAny(env *Env, m Method, h func(context.Context, any) (any, error)) {
	if declared(env.spec.Serves, m.MethodName()) == nil {
		env.mistake("answers %s, which its Spec does not list in Serves", m.MethodName())
		return
	}
	env.runtime.Handle(m, h)
}

// Call calls a method of another service and waits for its answer. Neither
// side writes to the request or the response afterwards.
func Call[Req, Resp any](ctx context.Context, env *Env, m api.Method[Req, Resp], req *Req) (*Resp, error) {
	resp, err := CallAny(ctx, env, m, req)
	if err != nil {
		return nil, err
	}
	return resp.(*Resp), nil
}

// CallAny makes a call like Call; req and the response are pointers of the types
// of the method.
func CallAny(ctx context.Context, env *Env, m Method, req any) (resp any, err error) {
	method := declared(env.spec.Calls, m.MethodName())
	if method == nil {
		return nil, api.Errorf(codes.Internal, "%s calls %s, which its Spec does not list in Calls", env.spec.Name, m.MethodName())
	}
	return env.runtime.Call(ctx, method, req)
}

// CallNow makes a call like Call that never waits: it fails with Unavailable
// unless whoever serves the method runs in this process, and the handler, whose
// context has ended, answers from what it has. It is how a stage calls.
func CallNow[Req, Resp any](env *Env, m api.Method[Req, Resp], req *Req) (*Resp, error) {
	method := declared(env.spec.Calls, m.MethodName())
	if method == nil {
		return nil, api.Errorf(codes.Internal, "%s calls %s, which its Spec does not list in Calls", env.spec.Name, m.MethodName())
	}
	resp, err := env.runtime.CallNow(method, req)
	if err != nil {
		return nil, err
	}
	return resp.(*Resp), nil
}

// On subscribes to a kind of event. A service's events are handled one at a
// time on one goroutine, so state that only handlers touch needs no lock.
func On[E any](env *Env, s api.Subject[E], h func(context.Context, *E)) {
	OnAny(env, s, func(ctx context.Context, e any) { h(ctx, e.(*E)) })
}

// OnAny is On for a subject whose type is not known.
func OnAny(env *Env, s Subject, h func(ctx context.Context, event any)) {
	if subscribed(env.spec.Subscribes, s.SubjectName()) == nil {
		env.mistake("subscribes to %s, which its Spec does not list in Subscribes", s.SubjectName())
		return
	}
	env.runtime.Subscribe(s, h)
}

// NIB returns what the service reads of the network (Spec.Reads), as it is now.
func NIB(env *Env) nib.Snapshot { return env.runtime.Network() }

// OnChange has h called when some parts of the network have changed that the
// service reads: as an event, first with all that is known, and then with what is
// otherwise since the last call. It may see several changes at once, and not see
// what lasted a moment only; it never misses the last.
func OnChange(env *Env, p nib.Parts, h func(nib.Change)) {
	if env.spec.Reads&p != p {
		env.mistake("follows parts of the network that its Spec does not list in Reads")
		return
	}
	env.runtime.OnChange(p, h)
}

// Publish hands an event to all subscribers, who share the one message.
func Publish[E any](env *Env, s api.Subject[E], e *E) {
	subject := subscribed(env.spec.Publishes, s.Name)
	if subject == nil {
		panic(fmt.Sprintf("weft: %s publishes %s, which its Spec does not list in Publishes", env.spec.Name, s.Name))
	}
	env.runtime.Publish(subject, e)
}

// Stage makes the service a stage of the packet-in pipeline. open is called
// once for each session of a switch and returns the stage for its packets;
// what open keeps is touched by one goroutine only.
func Stage(env *Env, open func(flow.DPID) StageFunc) {
	if !env.spec.Stage {
		env.mistake("registers a stage, but its Spec does not say Stage")
		return
	}
	env.runtime.Stage(open)
}

// OpenPipeline opens the pipeline for the packets of one session of a switch.
func OpenPipeline(env *Env, sw flow.DPID, later Later) Pipeline {
	return env.runtime.Pipeline(sw, later)
}

// Confirmed tells those who watch packets what a switch has confirmed of a
// decision that has a Trace.
func Confirmed(env *Env, c *flow.Confirmation) { env.runtime.Confirmed(c) }

// Replicas returns the number of this instance among those of its service that
// run, from 0, and how many they are. Instances agree on it, after a moment.
func Replicas(env *Env) (index, count int) { return env.runtime.Replicas() }

// ReportLimits registers what lists the limits of the configuration that the service has
// reached lately, at a time in nanoseconds since 1970. Health warns about them.
func ReportLimits(env *Env, list func(now int64) []*api.LimitReached) { env.runtime.OnLimits(list) }

// OnReplicas registers what is called, as an event of the service's, when
// Replicas has changed.
func OnReplicas(env *Env, h func(index, count int)) { env.runtime.OnReplicas(h) }

// Others returns the names of the instances that the plan has for this service
// beside this one: those that stand by for it, or for which it stands by.
func Others(env *Env) []string { return env.runtime.Others() }

// Ask asks one of Others, by whatever means of communication does not need the
// store, and returns its answer.
func Ask(ctx context.Context, env *Env, instance string, question []byte) (answer []byte, err error) {
	return env.runtime.Ask(ctx, instance, question)
}

// OnAsked registers what answers Ask. It is called from then on, also while the
// service stands by, on several goroutines at once.
func OnAsked(env *Env, h func(question []byte) (answer []byte)) { env.runtime.OnAsked(h) }

// Scratch returns memory that is as the service, in the last process of this name
// on this machine, has left it, even if that was killed; at first zeros. It begins
// at a word, and size is always the same. If an error is returned as well, the
// memory is like any other.
func Scratch(env *Env, name string, size int) ([]byte, error) { return env.runtime.Scratch(name, size) }

// State opens a bucket of durable state that the service owns.
func State(env *Env, name string) (Bucket, error) {
	for _, b := range env.spec.Buckets {
		if b == name {
			bucket, err := env.runtime.Bucket(env.spec.Name + "." + name)
			if err == nil {
				env.buckets = append(env.buckets, bucket)
			}
			return bucket, err
		}
	}
	return nil, api.Errorf(codes.Internal, "%s opens bucket %s, which its Spec does not list in Buckets", env.spec.Name, name)
}

// Damage says how the service's durable state, as far as it is open, is less
// than it was, nothing if it is whole: then nothing may be deleted from switches
// because the state does not say that it is wanted.
func Damage(env *Env) string {
	for _, b := range env.buckets {
		if d, ok := b.(Damageable); ok && d.Damage() != "" {
			return d.Damage()
		}
	}
	return ""
}

// Specs returns the declarations of all services of the system.
func Specs(env *Env) []Spec { return env.runtime.Specs() }

// Ready reports the mistakes made while setting up, or says that the service
// is set up and waits until all others are: after it, calls find their servers
// and events their subscribers.
func Ready(ctx context.Context, env *Env) error {
	if len(env.errs) > 0 {
		return errors.Join(env.errs...)
	}
	return env.runtime.Ready(ctx)
}

// Serve is Ready for services that only react: it then blocks until ctx ends.
func Serve(ctx context.Context, env *Env) error {
	if err := Ready(ctx, env); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (env *Env) mistake(format string, args ...any) {
	env.errs = append(env.errs, fmt.Errorf(env.spec.Name+" "+format, args...))
}

// declared returns the method of a name, nil if it is not in the list.
func declared(list []Method, name string) Method {
	for _, m := range list {
		if m.MethodName() == name {
			return m
		}
	}
	return nil
}

// subscribed returns the subject of a name, nil if it is not in the list.
func subscribed(list []Subject, name string) Subject {
	for _, s := range list {
		if s.SubjectName() == name {
			return s
		}
	}
	return nil
}

// Encode returns a message in the form in which it crosses processes: that of
// its own if it has one (flow's values), else protobuf's.
func Encode(dst []byte, msg any) ([]byte, error) {
	switch m := msg.(type) {
	case encoding.BinaryAppender:
		return m.AppendBinary(dst)
	case proto.Message:
		return proto.MarshalOptions{}.MarshalAppend(dst, m)
	}
	return nil, api.Errorf(codes.Internal, "message %T has no encoding", msg)
}

// Decode reads into msg what Encode has written.
func Decode(src []byte, msg any) error {
	switch m := msg.(type) {
	case encoding.BinaryUnmarshaler:
		return m.UnmarshalBinary(src)
	case proto.Message:
		return proto.Unmarshal(src, m)
	}
	return api.Errorf(codes.Internal, "message %T has no encoding", msg)
}
