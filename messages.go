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

// Handle registers the handler of a method. The handler runs on the caller's
// goroutine, so several calls may run at once. It must be idempotent: a remote
// call that failed may have run, and may be made again.
func Handle[Req, Resp any](env *Env, m api.Method[Req, Resp], h func(context.Context, *Req) (*Resp, error)) {
	HandleAny(env, m, api.AnswerBy(m, h).Call)
}

// HandleAny is Handle for a method whose types are not known at compile time.
func HandleAny(env *Env, m Method, h func(context.Context, any) (any, error)) {
	if findMethod(env.spec.Serves, m.MethodName()) == nil {
		env.addMistake("answers %s, which its Spec does not list in Serves", m.MethodName())
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

// CallAny is Call for a method whose types are not known at compile time. req
// and resp point to values of the method's types.
func CallAny(ctx context.Context, env *Env, m Method, req any) (resp any, err error) {
	method := findMethod(env.spec.Calls, m.MethodName())
	if method == nil {
		return nil, api.Errorf(codes.Internal, "%s calls %s, which its Spec does not list in Calls", env.spec.Name, m.MethodName())
	}
	return env.runtime.Call(ctx, method, req)
}

// CallNow is Call without waiting, for stages. It fails with Unavailable unless
// the service that serves the method runs in this process. The handler gets a
// context that has ended, and must answer without waiting.
func CallNow[Req, Resp any](env *Env, m api.Method[Req, Resp], req *Req) (*Resp, error) {
	method := findMethod(env.spec.Calls, m.MethodName())
	if method == nil {
		return nil, api.Errorf(codes.Internal, "%s calls %s, which its Spec does not list in Calls", env.spec.Name, m.MethodName())
	}
	resp, err := env.runtime.CallNow(method, req)
	if err != nil {
		return nil, err
	}
	return resp.(*Resp), nil
}

// On registers the handler of a subject's events. All events of a service are
// handled one at a time on one goroutine, so state that only event handlers use
// needs no lock.
func On[E any](env *Env, s api.Subject[E], h func(context.Context, *E)) {
	OnAny(env, s, func(ctx context.Context, e any) { h(ctx, e.(*E)) })
}

// OnAny is On for a subject whose type is not known at compile time.
func OnAny(env *Env, s Subject, h func(ctx context.Context, event any)) {
	if findSubject(env.spec.Subscribes, s.SubjectName()) == nil {
		env.addMistake("subscribes to %s, which its Spec does not list in Subscribes", s.SubjectName())
		return
	}
	env.runtime.Subscribe(s, h)
}

// NIB returns the current snapshot of the network. It has the parts that the
// service lists in Spec.Reads.
func NIB(env *Env) nib.Snapshot { return env.runtime.Network() }

// OnChange registers a handler of changes in some parts of the network, which
// the service must list in Spec.Reads. The handler runs as an event handler. Its
// first call covers everything that is known, each later call the difference
// since the call before. It may miss states between two calls, never the last.
func OnChange(env *Env, p nib.Parts, h func(nib.Change)) {
	if env.spec.Reads&p != p {
		env.addMistake("follows parts of the network that its Spec does not list in Reads")
		return
	}
	env.runtime.OnChange(p, h)
}

// Publish delivers an event to all subscribers. They share the message, so
// nobody may write to it afterwards.
func Publish[E any](env *Env, s api.Subject[E], e *E) {
	subject := findSubject(env.spec.Publishes, s.Name)
	if subject == nil {
		panic(fmt.Sprintf("weft: %s publishes %s, which its Spec does not list in Publishes", env.spec.Name, s.Name))
	}
	env.runtime.Publish(subject, e)
}

// Stage registers the service as a stage of the packet-in pipeline. open is
// called once for each session of a switch and returns the function that handles
// its packets. Only one goroutine uses the state of a session.
func Stage(env *Env, open func(flow.DPID) StageFunc) {
	if !env.spec.Stage {
		env.addMistake("registers a stage, but its Spec does not say Stage")
		return
	}
	env.runtime.Stage(open)
}

// OpenPipeline opens the pipeline for the packets of one session of a switch.
func OpenPipeline(env *Env, sw flow.DPID, later Later) Pipeline {
	return env.runtime.Pipeline(sw, later)
}

// ReportConfirmation reports to packet traces what a switch has confirmed of a decision
// with a Trace.
func ReportConfirmation(env *Env, c *flow.Confirmation) { env.runtime.ReportConfirmation(c) }

// Replicas returns the index of this instance among the running instances of its
// service, from 0, and their number. After a change, instances may disagree for
// a moment.
func Replicas(env *Env) (index, count int) { return env.runtime.Replicas() }

// ReportLimits registers a function that lists the limits of the configuration
// that the service has recently reached. now is in nanoseconds since 1970. The
// controller's health warns of these limits.
func ReportLimits(env *Env, list func(now int64) []*api.LimitReached) { env.runtime.OnLimits(list) }

// OnReplicas registers a handler of changes of Replicas. It runs as an event
// handler.
func OnReplicas(env *Env, h func(index, count int)) { env.runtime.OnReplicas(h) }

// StandbyPeers returns the names of the plan's other instances of this worker, the
// active one and its standbys; none if the worker has no standby.
func StandbyPeers(env *Env) []string { return env.runtime.StandbyPeers() }

// AskPeer sends a question to one of StandbyPeers and returns its answer. It does not
// depend on the store.
func AskPeer(ctx context.Context, env *Env, instance string, question []byte) (answer []byte, err error) {
	return env.runtime.AskPeer(ctx, instance, question)
}

// AnswerPeers registers the function that answers AskPeer. It may be called from
// then on, on several goroutines at once, also while the instance is a standby.
func AnswerPeers(env *Env, h func(question []byte) (answer []byte)) { env.runtime.AnswerPeers(h) }

// Scratch returns memory with the content that the service left in it in the
// last process of the same name on this machine, even if that process was
// killed. The memory is zero at first and aligned to a word. size must always be
// the same. If Scratch also returns an error, the memory does not outlive the
// process.
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

// Damage describes what is missing from the service's open buckets; it returns ""
// if they are complete. While they are not, the service must not delete entries
// from switches only because its state lacks them.
func Damage(env *Env) string {
	for _, b := range env.buckets {
		if d, ok := b.(Damageable); ok && d.Damage() != "" {
			return d.Damage()
		}
	}
	return ""
}

// Specs returns the Specs of all services of the system.
func Specs(env *Env) []Spec { return env.runtime.Specs() }

// Ready returns the mistakes made in the service's set-up. If there are none, it
// marks the set-up as complete and waits until every service has completed its
// own. Afterwards every declared call has a server and every event its
// subscribers.
func Ready(ctx context.Context, env *Env) error {
	if len(env.errs) > 0 {
		return errors.Join(env.errs...)
	}
	return env.runtime.Ready(ctx)
}

// Serve calls Ready and then blocks until ctx ends. Services that only answer
// calls and handle events return its result from Run.
func Serve(ctx context.Context, env *Env) error {
	if err := Ready(ctx, env); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// addMistake records an error in the set-up, which Ready returns.
func (env *Env) addMistake(format string, args ...any) {
	env.errs = append(env.errs, fmt.Errorf(env.spec.Name+" "+format, args...))
}

// findMethod returns the method with the given name, or nil if the list lacks it.
func findMethod(list []Method, name string) Method {
	for _, m := range list {
		if m.MethodName() == name {
			return m
		}
	}
	return nil
}

// findSubject returns the subject with the given name, or nil if the list lacks it.
func findSubject(list []Subject, name string) Subject {
	for _, s := range list {
		if s.SubjectName() == name {
			return s
		}
	}
	return nil
}

// Encode appends the encoding of a message between processes to dst: the
// message's own encoding if it has one (flow's values), else protobuf's.
func Encode(dst []byte, msg any) ([]byte, error) {
	switch m := msg.(type) {
	case encoding.BinaryAppender:
		return m.AppendBinary(dst)
	case proto.Message:
		return proto.MarshalOptions{}.MarshalAppend(dst, m)
	}
	return nil, api.Errorf(codes.Internal, "message %T has no encoding", msg)
}

// Decode decodes into msg a message that Encode has encoded.
func Decode(src []byte, msg any) error {
	switch m := msg.(type) {
	case encoding.BinaryUnmarshaler:
		return m.UnmarshalBinary(src)
	case proto.Message:
		return proto.Unmarshal(src, m)
	}
	return api.Errorf(codes.Internal, "message %T has no encoding", msg)
}
