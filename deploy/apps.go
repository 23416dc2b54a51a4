package deploy

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/transport"
)

// outsideMethod carries a call by a client outside to the process that runs the
// service. Its request is the method's name, then the call's request.
const outsideMethod = "deploy.Outside"

// attached holds the apps that are attached to this process.
type attached struct {
	config      *NodeConfig
	members     *membership
	log         *slog.Logger
	server      atomic.Pointer[apps.Server]         // nil: no app may attach
	stages      atomic.Pointer[map[string]apps.App] // by name; replaced, never written to
	watch       atomic.Pointer[map[string]apps.App] // the observers, alike
	unpublished atomic.Bool                         // the directory lacks the attached apps
	leaving     atomic.Bool                         // the process stops: nothing is published
	metric      *local.Metrics
}

func (a *attached) init(n *Node) {
	a.config, a.members, a.log, a.metric = &n.config, &n.members, n.log, n.worker.Metrics("deploy")
	a.stages.Store(&map[string]apps.App{})
	a.watch.Store(&map[string]apps.App{})
}

// Apps returns the server for apps and clients at this process's port;
// NodeConfig.Listen calls it, once. client is the TLS configuration for
// requests to REST apps on other machines; if it is not nil, the port requires
// certificates. If it is nil, the port requires none and accepts only this
// machine.
func (n *Node) Apps(client *tls.Config) (*apps.Server, error) {
	c := apps.Config{Caller: caller{n}, Attach: n.apps.attach, TLS: client, Log: n.log, Changed: n.config.Changed, Timeout: n.apps.timeout, Grant: n.apps.grant, Refused: n.apps.refused}
	if client != nil {
		c.Peer = transport.Peer
	}
	o, err := apps.New(c)
	if err != nil {
		return nil, err
	}
	n.apps.server.Store(o)
	return o, nil
}

// Ready returns an error that says why the process does not do its part of the
// plan yet; nil if it does.
func (n *Node) Ready() error {
	n.members.mu.Lock()
	defer n.members.mu.Unlock()
	if n.members.current == nil {
		return fmt.Errorf("process %s has not seen the plan yet", n.config.Process)
	}
	mine, _ := n.members.current.InstanceOf(n.config.Process)
	for _, name := range mine.Services {
		if s := n.members.entry.Service(name); s == nil || s.State != members.StateReady && s.State != members.StateStandby {
			return fmt.Errorf("service %s is not ready", name)
		}
	}
	return nil
}

// timeout returns the time that the plan gives an app to answer; 0 if it gives
// none.
func (a *attached) timeout(name string) time.Duration {
	if v := a.members.links.View.Load(); v.Current != nil {
		if app := v.Current.InForce().App(name); app != nil {
			return app.Timeout
		}
	}
	return 0
}

// grant returns the rights that the plan gives an app; none if it does not name
// the app.
func (a *attached) grant(name string) apps.Grant {
	if v := a.members.links.View.Load(); v.Current != nil {
		if app := v.Current.InForce().App(name); app != nil {
			switches, err := flow.ParseSwitchList(app.Switches)
			if err == nil { // as in a plan that was checked
				return apps.Grant{May: app.MayCall, Switches: switches, Tables: app.Tables, Entries: app.Entries, PacketsPerSecond: app.PacketsPerS}
			}
		}
	}
	return apps.Grant{May: func(string) bool { return false }}
}

// refused counts an app's request that the plan does not permit. Apps that the
// plan does not name share one label in the metrics.
func (a *attached) refused(name, reason string) {
	if v := a.members.links.View.Load(); v.Current == nil || v.Current.InForce().App(name) == nil {
		name = ""
	}
	a.metric.Counter("app_refused_total", "Calls and decisions of apps that the plan does not give them, by reason; without a name those of callers that it does not name.", "app", name, "reason", reason).Add(1)
}

// attach adds an app and notifies the other processes.
func (a *attached) attach(info apps.AppInfo) (detach func(), err error) {
	if err := a.fits(info); err != nil {
		return nil, err
	}
	state := members.AppState{Name: info.Name, Kind: info.Kind.String(), Transport: info.Transport, Peer: info.Peer, Epoch: uint64(time.Now().UnixNano())}
	a.set(info.Kind, info.Name, info.App)
	a.members.mu.Lock()
	a.members.entry.Apps = append(slices.Clone(a.members.entry.Apps), state)
	a.members.mu.Unlock()
	detach = func() {
		a.members.mu.Lock()
		a.members.entry.Apps = slices.DeleteFunc(slices.Clone(a.members.entry.Apps), func(s members.AppState) bool { return s == state })
		a.members.mu.Unlock()
		a.set(info.Kind, info.Name, nil)
		if !a.leaving.Load() {
			a.publish()
		}
	}
	a.publish()
	return detach, nil
}

// publish writes the attached apps into the directory; if that fails, reconcile
// tries again later.
func (a *attached) publish() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := a.members.publish(ctx); err != nil {
		a.log.Warn("the other processes do not know yet which apps are attached", "error", err)
		a.unpublished.Store(true)
	}
}

// republish repeats a publish that failed; reconcile calls it.
func (a *attached) republish() {
	if a.unpublished.Swap(false) {
		a.publish()
	}
}

// fits returns an error that says why an app cannot attach.
func (a *attached) fits(info apps.AppInfo) error {
	v := a.members.links.View.Load()
	switch {
	case a.config.spec(info.Name) != nil:
		return api.Errorf(codes.InvalidArgument, "a service of Weft's is called %s; choose another name", info.Name)
	case v.Current == nil:
		return api.Errorf(codes.Unavailable, "this process has not seen the plan yet; try again")
	}
	planned := v.Current.InForce().App(info.Name)
	switch {
	case info.Kind == apps.Stage && (planned == nil || planned.Kind == plan.AppObserver):
		var names []string
		for _, app := range v.Current.InForce().Apps {
			names = append(names, app.Name)
		}
		return api.Errorf(codes.FailedPrecondition, "plan %s has no stage %s; add it there, as apps: {%s: {absent: skip}}, and in its place to pipeline if there is one; its apps are: %s",
			v.Current.InForce().Name, info.Name, info.Name, config.OrNone(names))
	case info.Kind == apps.Observer && planned != nil && planned.Kind == plan.AppStage:
		return api.Errorf(codes.FailedPrecondition, "in plan %s, %s is a stage; an observer needs a name of its own, and no place in the plan but for what it may do (kind: observer)", v.Current.InForce().Name, info.Name)
	}
	return nil
}

// set adds an app to the table of its kind, or removes it.
func (a *attached) set(kind apps.Kind, name string, app apps.App) {
	at := &a.stages
	if kind == apps.Observer {
		at = &a.watch
	}
	a.members.mu.Lock()
	defer a.members.mu.Unlock()
	next := map[string]apps.App{}
	for k, v := range *at.Load() {
		next[k] = v
	}
	if next[name] = app; app == nil {
		delete(next, name)
	}
	at.Store(&next)
}

// close detaches all apps, because the process ends.
func (a *attached) close() {
	a.leaving.Store(true)
	if o := a.server.Load(); o != nil {
		o.Close()
	}
}

// list returns the state of the apps that are attached here.
func (a *attached) list() []*api.App {
	if o := a.server.Load(); o != nil {
		return o.Apps()
	}
	return nil
}

// sign returns the answer to a ping: the attached apps.
func (a *attached) sign() []byte {
	list := a.list()
	if len(list) == 0 {
		return []byte{members.AnswerOK}
	}
	b, err := proto.MarshalOptions{}.MarshalAppend([]byte{members.AnswerOK}, &api.ListAppsResponse{Apps: list})
	if err != nil {
		return []byte{members.AnswerOK}
	}
	return b
}

// readSign decodes the apps in the answer to a ping.
func readSign(b []byte) []*api.App {
	m := &api.ListAppsResponse{}
	if len(b) < 2 || proto.Unmarshal(b[1:], m) != nil {
		return nil
	}
	return m.Apps
}

// appsOf returns the apps of a process as the directory lists them, with the
// details from its last ping answer where there is one.
func appsOf(e *members.Entry, known []*api.App) (list []*api.App) {
	for _, s := range e.Apps {
		if i := slices.IndexFunc(known, func(a *api.App) bool { return a.Name == s.Name }); i >= 0 {
			list = append(list, known[i])
			continue
		}
		list = append(list, &api.App{Name: s.Name, Kind: s.Kind, Transport: s.Transport, Peer: s.Peer, Since: time.Unix(0, int64(s.Epoch)).UTC().Format(time.RFC3339)})
	}
	return list
}

// caller calls methods for apps and clients outside: the methods of services in
// the plan, wherever they run.
type caller struct{ node *Node }

// find returns the declaration of a method whose messages are protobuf
// messages.
func (c caller) find(name string) (weft.Method, bool) {
	for _, s := range c.node.specs() {
		for _, m := range s.Serves {
			if m.MethodName() != name {
				continue
			}
			req, resp := m.NewMessages()
			_, ok := req.(proto.Message)
			_, ok2 := resp.(proto.Message)
			return m, ok && ok2
		}
	}
	return nil, false
}

// Call makes a call.
func (c caller) Call(ctx context.Context, method string, req proto.Message) (proto.Message, error) {
	m, ok := c.find(method)
	if !ok {
		return nil, api.Errorf(codes.Unavailable, "service %s is not in the plan", members.OwnerOf(method))
	}
	resp, err := c.node.direct(ctx, nil, m, req)
	if err != nil {
		return nil, err
	}
	return resp.(proto.Message), nil
}

// Method returns a function that makes an empty request.
func (c caller) Method(name string) (func() proto.Message, bool) {
	m, ok := c.find(name)
	if !ok {
		return nil, false
	}
	return func() proto.Message {
		req, _ := m.NewMessages()
		return req.(proto.Message)
	}, true
}

// Methods returns the names of the methods that clients can call.
func (c caller) Methods() (names []string) {
	for _, s := range c.node.specs() {
		for _, m := range s.Serves {
			if _, ok := c.find(m.MethodName()); ok {
				names = append(names, m.MethodName())
			}
		}
	}
	return names
}
