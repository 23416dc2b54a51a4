package apps

import (
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// registry knows the apps that are attached.
type registry struct {
	config *Config
	rate   *rate.Limiter

	mu     sync.Mutex // guards what follows
	apps   map[string]*app
	closed bool
	ended  map[string]string // why each app was last detached, by name
	used   map[string]*allowance
	wait   sync.WaitGroup // of the apps
}

func newRegistry(c *Config, r *rate.Limiter) *registry {
	return &registry{config: c, rate: r, apps: map[string]*app{}, ended: map[string]string{}, used: map[string]*allowance{}}
}

var appName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// check checks an app's hello.
func (r *registry) check(ctx context.Context, h *api.Hello) (AppInfo, error) {
	fail := func(kind codes.Code, format string, args ...any) (AppInfo, error) {
		return AppInfo{}, api.Errorf(kind, "hello: "+format, args...)
	}
	info := AppInfo{Name: h.GetName()}
	if !appName.MatchString(info.Name) {
		return fail(codes.InvalidArgument, "name %.60q: want lower-case letters, digits and -, beginning with a letter, at most 40", info.Name)
	}
	switch h.GetKind() {
	case Stage.String():
	case Observer.String():
		info.Kind = Observer
	default:
		return fail(codes.InvalidArgument, "kind %.60q: want stage or observer", h.GetKind())
	}
	var err error
	if info.Filter, err = flow.ParseMatch(h.GetFilter()); err != nil {
		return fail(codes.InvalidArgument, "filter: %w", err)
	}
	if r.config.Peer != nil {
		if ids := r.config.Peer(ctx); !mayBe(ids, info.Name) {
			return fail(codes.PermissionDenied, "the certificate is that of %q: to attach as %s it must name weft://app/%s (weft certs)", ids, info.Name, info.Name)
		}
	}
	return info, nil
}

// mayBe reports whether a peer with these identities may attach under a name.
func mayBe(identities []string, name string) bool {
	return slices.Contains(identities, "weft://app/"+name) || slices.Contains(identities, "weft://service/"+name)
}

// attach adds an app, also to the runtime, until its context ends. It calls
// gone last: after the runtime is notified and the name is free.
func (r *registry) attach(a *app, gone func()) (*api.Welcome, error) {
	name := a.info.Name
	if !r.rate.Allow() {
		return nil, api.Errorf(codes.ResourceExhausted, "too many apps attach at once: try again in a second")
	}
	r.mu.Lock()
	switch other := r.apps[name]; {
	case r.closed:
		r.mu.Unlock()
		return nil, api.Errorf(codes.Unavailable, "%w", errStops)
	case other != nil:
		r.mu.Unlock()
		return nil, api.Errorf(codes.AlreadyExists, "app %s is already attached, over %s from %s; stop that one, or choose another name", name, other.info.Transport, other.info.Peer)
	case len(r.apps) >= r.config.Limits.Apps:
		r.mu.Unlock()
		return nil, api.Errorf(codes.ResourceExhausted, "%d apps are attached: no more are allowed", len(r.apps))
	}
	if a.used = r.used[name]; a.used == nil {
		if len(r.used) >= 4*r.config.Limits.Apps {
			clear(r.used)
		}
		a.used = &allowance{}
		r.used[name] = a.used
	}
	r.apps[name] = a // the name is taken; every exit below releases it
	r.wait.Add(1)
	last := r.ended[name]
	r.mu.Unlock()

	detach, err := r.config.Attach(a.info)
	if err != nil {
		a.end(err)
		r.remove(a, "")
		r.wait.Done()
		return nil, api.Errorf(refusedBy(err), "app %s is refused: %w", name, err)
	}
	r.log().Info("app attached", "app", name, "kind", a.info.Kind.String(), "transport", a.info.Transport, "peer", a.info.Peer)
	if a.info.Kind == Observer {
		r.wait.Go(a.pump)
	}
	go func() {
		defer r.wait.Done()
		<-a.ctx.Done()
		cause := context.Cause(a.ctx)
		detach()
		r.log().Info("app detached", "app", name, "cause", cause.Error())
		r.remove(a, cause.Error())
		gone()
	}()
	return &api.Welcome{
		Name: name, TimeoutMs: r.config.timeoutMs(name), MaxBatch: uint32(r.config.Limits.Batch), LastError: last,
	}, nil
}

// refusedBy returns the kind of a runtime's refusal.
func refusedBy(err error) codes.Code {
	if kind := api.KindOf(err); kind != codes.Unknown {
		return kind
	}
	return codes.FailedPrecondition
}

func (r *registry) log() *slog.Logger { return r.config.Log }

// remove releases an app's name.
func (r *registry) remove(a *app, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.apps, a.info.Name)
	if why != "" {
		if len(r.ended) >= 4*r.config.Limits.Apps {
			clear(r.ended)
		}
		r.ended[a.info.Name] = why
	}
}

// find returns an attached app; nil if none has the name.
func (r *registry) find(name string) *app {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.apps[name]
}

// list returns the attached apps by name.
func (r *registry) list() []*app {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.apps), func(a, b *app) int { return strings.Compare(a.info.Name, b.info.Name) })
}

// close refuses new apps, and waits until all are gone; their context has
// ended.
func (r *registry) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wait.Wait()
}

// Apps returns the state of the attached apps, by name.
func (o *Server) Apps() []*api.App {
	var list []*api.App
	for _, a := range o.apps.list() {
		list = append(list, a.status())
	}
	return list
}

// listed writes a list of names as in a sentence.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
