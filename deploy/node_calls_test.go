package deploy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/transport"
)

// callers declares hosts, which serves FindHost, and gateway, which calls it.
func callers() []weft.Spec {
	return []weft.Spec{
		{Name: "hosts", Serves: weft.Methods(api.FindHost)},
		{Name: "gateway", Calls: weft.Methods(api.FindHost), Scale: weft.Any},
	}
}

// findHost answers with the name of the process, or as the request says.
func findHost(p *actor) {
	weft.Handle(p.env, api.FindHost, func(ctx context.Context, req *api.FindHostRequest) (*api.Host, error) {
		switch {
		case req.GetAddress() == "panic":
			panic("asked for")
		case req.GetAddress() == "hang":
			<-ctx.Done()
			return nil, ctx.Err()
		case strings.HasPrefix(req.GetAddress(), "kind "):
			var kind uint32
			if _, err := fmt.Sscan(req.GetAddress()[5:], &kind); err != nil {
				return nil, err
			}
			return nil, api.Errorf(codes.Code(kind), "asked for")
		}
		return &api.Host{Mac: req.GetAddress(), Vlan: 7}, nil
	})
}

func find(ctx context.Context, p *actor, mac string) error {
	ctx, cancel := context.WithTimeout(ctx, testwait.Limit)
	defer cancel()
	h, err := weft.Call(ctx, p.env, api.FindHost, &api.FindHostRequest{Address: mac})
	if err == nil && (h.GetMac() != mac || h.GetVlan() != 7) {
		return fmt.Errorf("answer %v to %s", h, mac)
	}
	return err
}

func TestCallsBetweenProcesses(t *testing.T) {
	for _, kind := range []string{"one", "grpc", "ws", "rest", "shm"} {
		t.Run(kind, func(t *testing.T) {
			c := newCluster(t, callers(), map[string]func(*actor){"hosts": findHost})
			if kind == "one" {
				c.apply("{name: a, events: grpc, workers: {a: {services: [hosts, gateway]}}}")
			} else {
				c.apply("{name: a, events: grpc, transport: " + kind + ", workers: {a: {services: [hosts]}, b: {services: [gateway]}}}")
			}
			c.startAll()
			g := c.run("gateway")
			if err := find(t.Context(), g, "m"); err != nil {
				t.Error(err)
			}
			for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
				if err := find(t.Context(), g, fmt.Sprintf("kind %d", code)); api.KindOf(err) != code || !strings.Contains(err.Error(), "asked for") {
					t.Errorf("%v has become %v: %v", code, api.KindOf(err), err)
				}
			}
			if err := find(t.Context(), g, "panic"); api.KindOf(err) != codes.Internal {
				t.Errorf("panic: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := find(ctx, g, "hang"); api.KindOf(err) != codes.DeadlineExceeded {
				t.Errorf("deadline: %v", err)
			}
		})
	}
}

func TestCallsOverAllTransportsDuringChanges(t *testing.T) {
	c := newCluster(t, callers(), map[string]func(*actor){"hosts": findHost})
	text := func(kind, a, b string) string {
		return fmt.Sprintf("{name: a, events: grpc, transport: %s, workers: {a: {services: [%s]}, b: {services: [%s]}, c: {services: [gateway]}}}", kind, a, b)
	}
	plans := []string{text("ws", "hosts", ""), text("rest", "", "hosts"), text("shm", "hosts", ""), text("grpc", "", "hosts"), text("grpc", "hosts", ""), text("grpc", "", "hosts"),
		"{name: a, events: grpc, workers: {a: {services: []}, b: {services: []}, c: {services: [gateway, hosts]}}}"}
	for i, p := range plans {
		plans[i] = strings.ReplaceAll(p, "[]", "[idle]")
	}
	c.bases = append(c.bases, weft.Spec{Name: "idle", Scale: weft.Any})
	c.apply(plans[0])
	c.startAll()
	stop := make(chan struct{})
	var work sync.WaitGroup
	var made atomic.Int64
	g := c.run("gateway")
	for i := range 4 {
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := find(t.Context(), g, fmt.Sprintf("%d-%d", i, n)); err != nil {
					t.Errorf("call %d: %v", n, err)
					return
				}
				made.Add(1)
			}
		})
	}
	for round := range 15 {
		c.apply(plans[round%len(plans)])
		c.startAll()
	}
	close(stop)
	work.Wait()
	if most := c.most["hosts"]; most != 1 {
		t.Errorf("%d runs of hosts at once", most)
	}
	t.Logf("%d calls", made.Load())
}

func TestCallWaitsForAServiceThatIsAway(t *testing.T) {
	c := newCluster(t, callers(), map[string]func(*actor){"hosts": findHost})
	c.apply("{name: a, events: grpc, workers: {a: {services: [hosts]}, b: {services: [gateway]}}}")
	c.startAll()
	c.kill(c.process("a"))
	done := make(chan error, 1)
	g := c.run("gateway")
	go func() { done <- find(context.Background(), g, "m") }()
	select {
	case err := <-done:
		t.Fatalf("it has not waited: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := find(ctx, g, "m"); api.KindOf(err) != codes.DeadlineExceeded {
		t.Errorf("a call whose time is up: %v", err)
	}
	c.start("a")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// lateTransport is one whose first dials take too long, as on a machine where the
// other process gets no time.
type lateTransport struct {
	transport.Transport
	late *atomic.Int32
}

func (l lateTransport) Dial(ctx context.Context, address string) (transport.Conn, error) {
	if l.late.Add(-1) >= 0 {
		return nil, transport.ErrorOf(context.DeadlineExceeded)
	}
	return l.Transport.Dial(ctx, address)
}

// A call waits for a process that cannot be reached in time, as it does for one
// that is away.
func TestCallOfAProcessThatIsReachedLate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, callers(), map[string]func(*actor){"hosts": findHost})
	c.apply("{name: a, events: grpc, workers: {a: {services: [hosts]}, b: {services: [gateway]}}}")
	c.start("a")
	var late atomic.Int32
	late.Store(20)
	c.start("b", func(config *deploy.NodeConfig) {
		for name, of := range config.Transports {
			config.Transports[name] = lateTransport{of, &late}
		}
	})
	if err := find(t.Context(), c.run("gateway"), "m"); err != nil {
		t.Error(err)
	}
	if late.Load() >= 0 {
		t.Error("the process was reached at once")
	}
}

// lossyTransport is one whose connections break when the answers of some calls are due.
type lossyTransport struct {
	transport.Transport
	lost *atomic.Int32
}

func (l lossyTransport) Dial(ctx context.Context, address string) (transport.Conn, error) {
	conn, err := l.Transport.Dial(ctx, address)
	return lossyConn{conn, l.lost}, err
}

type lossyConn struct {
	transport.Conn
	lost *atomic.Int32
}

func (l lossyConn) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	answer, err := l.Conn.Call(ctx, method, req)
	if err == nil && strings.HasPrefix(method, api.UnbindHost.Name) && l.lost.Add(-1) >= 0 {
		return nil, transport.Errorf(transport.Unavailable, "the connection is lost")
	}
	return answer, err
}

// A change whose answer is lost is made once, and its answer is that of the first time; one that
// was refused is refused again, and not tried again.
func TestAnswerOfARepeatedCall(t *testing.T) {
	t.Parallel()
	bases := []weft.Spec{
		{Name: "hosts", Serves: weft.Methods(api.UnbindHost)},
		{Name: "gateway", Calls: weft.Methods(api.UnbindHost), Scale: weft.Any},
	}
	var made atomic.Uint32
	c := newCluster(t, bases, map[string]func(*actor){"hosts": func(p *actor) {
		weft.Handle(p.env, api.UnbindHost, func(_ context.Context, req *api.UnbindHostRequest) (*api.UnbindHostResponse, error) {
			if n := made.Add(1); req.GetMac() == "refused" || n > 1 {
				return nil, api.Errorf(codes.NotFound, "nothing for the call %d", n)
			}
			return &api.UnbindHostResponse{Deleted: 1}, nil
		})
	}})
	c.apply("{name: a, events: grpc, workers: {a: {services: [hosts]}, b: {services: [gateway]}}}")
	c.start("a")
	var lost atomic.Int32
	c.start("b", func(config *deploy.NodeConfig) {
		for name, of := range config.Transports {
			config.Transports[name] = lossyTransport{of, &lost}
		}
	})
	for _, request := range []string{"first", "refused", "third"} {
		made.Store(0)
		if request == "third" {
			made.Store(1)
		}
		lost.Store(3)
		resp, err := weft.Call(t.Context(), c.run("gateway").env, api.UnbindHost, &api.UnbindHostRequest{Mac: request})
		switch {
		case lost.Load() > 0:
			t.Errorf("%s: %d answers fewer lost", request, lost.Load())
		case request == "first" && (err != nil || resp.GetDeleted() != 1 || made.Load() != 1):
			t.Errorf("first: %v, %v, made %d times", resp, err, made.Load())
		case request == "refused" && (api.KindOf(err) != codes.NotFound || made.Load() != 1):
			t.Errorf("refused: %v, made %d times", err, made.Load())
		case request == "third" && (api.KindOf(err) != codes.NotFound || made.Load() != 2): // another call
			t.Errorf("third: %v, made %d times", err, made.Load())
		}
	}
}

func TestCallOfAServiceNotInThePlan(t *testing.T) {
	c := newCluster(t, callers(), map[string]func(*actor){"hosts": findHost})
	c.apply("{name: a, events: grpc, partial: true, workers: {b: {services: [gateway]}}}")
	c.startAll()
	if err := find(t.Context(), c.run("gateway"), "m"); api.KindOf(err) != codes.Unavailable || !strings.Contains(err.Error(), "not in the plan") {
		t.Error(err)
	}
}

func TestCallGoesToAnotherReplicaThanTheFrozen(t *testing.T) {
	specs := callers()
	specs[0].Scale = weft.Any
	c := newCluster(t, specs, map[string]func(*actor){"hosts": findHost})
	c.apply("{name: a, events: grpc, workers: {a: {services: [hosts], replicas: 2}, b: {services: [gateway]}}}")
	c.startAll()
	g := c.run("gateway")
	for _, victim := range []string{"a-1", "a-2"} {
		p := c.process(victim)
		p.gate.freeze()
		var work sync.WaitGroup
		for range 20 {
			work.Go(func() {
				if err := find(t.Context(), g, "m"); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		p.gate.thaw()
		c.eventually(victim+" is used again", func() bool {
			list, err := c.process("b").node.ListWorkers(t.Context(), &api.ListWorkersRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range list.GetWorkers() {
				if w.GetState() != "up" {
					return false
				}
			}
			return true
		})
	}
}

func TestLocalCallWaitsForItsServer(t *testing.T) {
	specs := callers()
	specs[0].Config = &named{Name: "a"}
	slow := make(chan struct{})
	first := true
	c := newCluster(t, specs, map[string]func(*actor){"hosts": func(p *actor) {
		if !first { // the second run takes its time
			<-slow
		}
		first = false
		findHost(p)
	}})
	text := "{name: a, events: grpc, workers: {a: {services: [hosts, gateway]}}, config: {hosts: {name: %s}}}"
	c.apply(fmt.Sprintf(text, "a"))
	c.startAll()
	g := c.run("gateway")
	c.apply(fmt.Sprintf(text, "b"))
	c.eventually("hosts starts again", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.starts["hosts"] == 2 })
	done := make(chan error, 1)
	go func() { done <- find(context.Background(), g, "m") }()
	select {
	case err := <-done:
		t.Fatalf("it has not waited: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(slow)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestLocalCallThatItsServerLeaves has a service move while it is at a call of
// its own process.
func TestLocalCallThatItsServerLeaves(t *testing.T) {
	began := make(chan struct{})
	first := true
	c := newCluster(t, append(callers(), weft.Spec{Name: "idle"}), map[string]func(*actor){"hosts": func(p *actor) {
		if !first {
			findHost(p)
			return
		}
		first = false
		weft.Handle(p.env, api.FindHost, func(context.Context, *api.FindHostRequest) (*api.Host, error) {
			close(began)
			<-p.ctx.Done()
			return nil, p.ctx.Err()
		})
	}})
	c.apply("{name: a, events: grpc, workers: {a: {services: [gateway, hosts]}, b: {services: [idle]}}}")
	c.startAll()
	g := c.run("gateway")
	done := make(chan error, 1)
	go func() { done <- find(context.Background(), g, "m") }()
	<-began
	c.apply("{name: a, events: grpc, workers: {a: {services: [gateway]}, b: {services: [idle, hosts]}}}")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// named is a configuration with a pointer in it.
type named struct {
	Name  string `yaml:"name"`
	Inner *struct {
		Deep int `yaml:"deep"`
	} `yaml:"inner"`
}

func (*named) Validate() error { return nil }

// TestCallNow: a call that may not wait does not leave the process.
func TestCallNow(t *testing.T) {
	c := newCluster(t, callers(), map[string]func(*actor){"hosts": findHost})
	c.apply("{name: a, events: grpc, workers: {a: {services: [hosts]}, b: {services: [gateway]}}}")
	c.startAll()
	g := c.run("gateway")
	if err := find(t.Context(), g, "m"); err != nil { // it can be reached
		t.Error(err)
	}
	if _, err := weft.CallNow(g.env, api.FindHost, &api.FindHostRequest{Address: "m"}); api.KindOf(err) != codes.Unavailable {
		t.Errorf("a service of another process: %v", err)
	}
}
