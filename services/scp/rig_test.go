package scp

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/sbi"
	"github.com/weft-sdn/weft/wefttest"
)

// silent is a figure that nobody reads.
type silent struct{}

func (silent) Add(float64) {}

// rig is a front between network functions at 127.0.1.N and a repository.
type rig struct {
	t     testing.TB
	cfg   *Config
	proxy *proxy
	front *front
	back  *fakeBalancer
	made  *reconciler
	nrf   *fakeNRF
	now   atomic.Int64
	url   string
	tls   *tls.Config // of all of them; nil: without TLS

	handler atomic.Value // http.Handler: the NRF, if it is another than nrf

	feed    func(events ...any)
	stop    func()
	buckets map[string]object.Bucket
}

// fakeBalancer keeps what it is told.
type fakeBalancer struct {
	mu      sync.Mutex // guards the following
	vips    map[string]*api.Vip
	removed []string
	refuses string // a VIP
	counted []flow.Entry
}

func (b *fakeBalancer) list(context.Context) ([]*api.Vip, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*api.Vip
	for _, name := range slices.Sorted(maps.Keys(b.vips)) {
		v := proto.CloneOf(b.vips[name])
		v.Owner = owner
		for _, m := range v.Pool {
			m.Health = "up"
		}
		all = append(all, v)
	}
	return all, nil
}

func (b *fakeBalancer) set(_ context.Context, v *api.Vip) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v.Name == b.refuses {
		return api.Errorf(codes.InvalidArgument, "vip %s: member 127.0.1.2 is the address of vip other", v.Name)
	}
	b.vips[v.Name] = v
	return nil
}

func (b *fakeBalancer) remove(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.vips, name)
	b.removed = append(b.removed, name)
	return nil
}

func (b *fakeBalancer) pairs(context.Context, string, uint32) (*api.ListPairsResponse, error) {
	return &api.ListPairsResponse{Pairs: []*api.BalancedPair{
		{Vip: "scp-udm.7777", Client: "127.0.1.1", Member: "127.0.1.5", MemberPort: 7777, Packets: 10, Bytes: 1000, Since: "2026-01-01T00:00:00Z"},
		{Vip: "operators", Client: "127.0.1.1", Member: "127.0.1.5", MemberPort: 80},
	}}, nil
}

func (b *fakeBalancer) flows(_ context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*api.FlowEntry
	for _, e := range b.counted {
		f := api.NewFlowEntry(sw, &e)
		f.Packets, f.Bytes = 3, 300
		all = append(all, f)
	}
	return all, nil
}

// fakeNRF is a repository that can fail.
type fakeNRF struct {
	mu       sync.Mutex // guards the following
	book     map[string][]byte
	searches int
	got      []string
	asked    []string // discoveries
	fail     string   // silent, nonsense, broken, refuse
	stored   []byte   // the subscription, if it keeps them
	keeps    bool
	wait     chan struct{} // closed when it answers
	waits    bool
	last     []byte // body
	validity int
}

func (n *fakeNRF) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	n.last = body
	if r.Method != http.MethodGet {
		n.got = append(n.got, r.Method+" "+r.URL.Path)
	}
	if wait := n.wait; wait != nil {
		n.waits = true
		n.mu.Unlock()
		<-wait
		n.mu.Lock()
	}
	switch n.fail {
	case "silent":
		n.mu.Unlock()
		<-r.Context().Done()
		n.mu.Lock()
		return
	case "nonsense":
		_, _ = io.WriteString(w, `{"validityPeriod": "yes", "nfInstances": [[[]]]}`)
		return
	case "broken":
		sbi.WriteProblem(w, sbi.Problem(http.StatusInternalServerError, sbi.SystemFailure, ""))
		return
	case "refuse":
		sbi.WriteProblem(w, sbi.Problem(http.StatusForbidden, "OF_THE_NRF", ""))
		return
	}
	id, single := strings.CutPrefix(r.URL.Path, "/nnrf-nfm/v1/nf-instances/")
	switch {
	case r.URL.Path == "/nnrf-disc/v1/nf-instances":
		n.searches++
		n.asked = append(n.asked, r.URL.RawQuery)
		q, err := sbi.ParseQuery(r.URL.Query())
		var list []*sbi.NFProfile
		for _, id := range slices.Sorted(maps.Keys(n.book)) {
			p := &sbi.NFProfile{}
			_ = json.Unmarshal(n.book[id], p)
			list = append(list, p)
		}
		found := []sbi.NFProfile{}
		if err == nil {
			found, err = sbi.Search(list, q)
		}
		if err != nil {
			sbi.WriteProblem(w, err)
			return
		}
		_ = json.NewEncoder(w).Encode(sbi.SearchResult{ValidityPeriod: n.validity, NFInstances: found})
	case r.URL.Path == "/nnrf-nfm/v1/nf-instances":
		items := []string{}
		for _, id := range slices.Sorted(maps.Keys(n.book)) {
			var p sbi.NFProfile
			if of := r.URL.Query().Get("nf-type"); json.Unmarshal(n.book[id], &p) == nil && of != "" && of != string(p.NFType) {
				continue
			}
			items = append(items, fmt.Sprintf(`{"href":"http://nrf/nnrf-nfm/v1/nf-instances/%s"}`, id))
		}
		fmt.Fprintf(w, `{"_links":{"self":{"href":"x"},"item":[%s]},"totalItemCount":%d,"x":1.50}`, strings.Join(items, ","), len(items))
	case n.keeps && strings.HasPrefix(r.URL.Path, "/nnrf-nfm/v1/subscriptions"):
		if n.stored = body; r.Method == http.MethodPatch {
			n.stored, _ = json.Marshal(map[string]any{"nfStatusNotificationUri": "x"})
		}
		w.Header().Set("Location", "http://nrf/nnrf-nfm/v1/subscriptions/1")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case !single:
		fmt.Fprint(w, `{"passed": true}`)
	case r.Method == http.MethodPut:
		n.book[id] = body
		w.Header().Set("Location", "http://nrf"+r.URL.Path)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	case n.book[id] == nil:
		sbi.WriteProblem(w, sbi.Problem(http.StatusNotFound, sbi.ContextNotFound, ""))
	case r.Method == http.MethodPatch:
		items, _ := sbi.ParsePatch(body)
		n.book[id], _ = sbi.Apply(n.book[id], items)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		delete(n.book, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = w.Write(n.book[id])
	}
}

func (n *fakeNRF) set(f func(*fakeNRF)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n)
}

// failNRF has the NRF fail from now on, in one of the ways of fakeNRF.fail. Of one that is
// silent no answer is awaited for long.
func (g *rig) failNRF(how string) {
	g.nrf.set(func(n *fakeNRF) { n.fail = how })
	if how == "silent" {
		cfg := *g.proxy.cfg.Load()
		cfg.NRFTimeout = 100 * time.Millisecond
		g.proxy.cfg.Store(&cfg)
	}
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	return newRigBy(t, (*httptest.Server).Start, nil, change...)
}

// newRigBy is newRig with an NRF that start starts, whose clients speak TLS if there is one.
func newRigBy(t testing.TB, start func(*httptest.Server), secure *tls.Config, change ...func(*Config)) *rig {
	g := &rig{t: t, tls: secure, cfg: DefaultConfig(), nrf: &fakeNRF{book: map[string][]byte{}, validity: 30}, back: &fakeBalancer{vips: map[string]*api.Vip{}}, buckets: map[string]object.Bucket{}}
	g.now.Store(time.Now().UnixNano())
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, ok := g.handler.Load().(http.Handler); ok {
			h.ServeHTTP(w, r)
		} else {
			g.nrf.ServeHTTP(w, r)
		}
	}))
	web.Config.Protocols = new(http.Protocols)
	web.Config.Protocols.SetUnencryptedHTTP2(true)
	start(web)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	port, err := freeport.Port() // held while the front is stopped: no other test's front takes it
	if err != nil {
		t.Fatal(err)
	}
	g.cfg.NRF, g.cfg.Listen, g.cfg.NRFTimeout = web.URL, net.JoinHostPort("127.0.0.2", strconv.Itoa(port)), time.Minute
	g.cfg.Vips = []netip.Prefix{netip.MustParsePrefix("127.0.9.0/24")}
	for _, f := range change {
		f(g.cfg)
	}
	if err := g.cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if g.url = "http://" + g.cfg.Listen; secure != nil {
		g.url = "https://" + g.cfg.Listen
	}
	store := wefttest.NewStore()
	for _, name := range []string{"policies", "instances", "endpoints", "keys"} {
		if g.buckets[name], err = store.Bucket(context.Background(), "scp."+name); err != nil {
			t.Fatal(err)
		}
	}
	g.start()
	t.Cleanup(func() { g.stop() })
	return g
}

// start starts a proxy on what the one before has stored.
func (g *rig) start() {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	g.proxy = newProxy(g.cfg, g.buckets["policies"], log)
	g.proxy.count = newCounts(func(string, string, ...string) Counter { return silent{} })
	g.feed = wefttest.Network(reads, g.proxy.networkChanged)
	instance, endpoint := g.proxy.restore(g.now.Load())
	keepers := map[string]*object.Persister{}
	for name, f := range map[string]func(string, string){"instances": instance, "endpoints": endpoint} {
		keepers[name] = object.NewPersister(g.buckets[name])
		if err := keepers[name].Load(ctx, f); err != nil {
			g.t.Fatal(err)
		}
	}
	listen, _ := g.cfg.listen()
	at := &hostSockets{at: listen, places: newPlaces(g.cfg.Connections, &g.proxy.reached, silent{}, silent{}, log), locate: g.proxy.station}
	n, err := newNRF(g.cfg, at)
	if err != nil {
		g.t.Fatal(err)
	}
	r := newReconciler(g.proxy, g.back)
	r.now, g.made = g.now.Load, r
	g.front = newFront(g.proxy, n, at, r, r.await, log)
	g.front.now, g.front.ready = g.now.Load, testwait.Limit
	g.front.notifier = newNotifier(ctx, g.front, g.buckets["keys"])
	var work sync.WaitGroup
	last, end := context.WithCancel(context.Background())
	work.Go(func() { r.run(last) })
	work.Go(func() { g.proxy.shelve(last, keepers["instances"], keepers["endpoints"]) })
	work.Go(func() {
		defer end()
		g.front.serve(ctx)
	})
	g.stop = func() {
		cancel()
		work.Wait()
		n.transport.CloseIdleConnections()
	}
	g.eventually("the front listens", func() bool {
		c, err := net.Dial("tcp", g.cfg.Listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// lets reports whether a VIP lets the NRF and some clients connect, and nobody else.
func (g *rig) lets(v *api.Vip, clients ...string) bool {
	nrf, _, _ := g.cfg.nrf()
	return slices.Equal(v.GetAllow().GetClients(), append([]string{nrf.Addr().String() + "/32"}, clients...))
}

func (g *rig) eventually(what string, is func() bool) {
	g.t.Helper()
	testwait.Until(g.t, what, is)
}

// at is the address of the n-th network function.
func at(n int) string { return fmt.Sprintf("127.0.1.%d", n) }

// id is the id of the n-th network function.
func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// transport is that of a client at an address.
func (g *rig) transport(from string) *http.Transport {
	t := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext, Protocols: new(http.Protocols), TLSClientConfig: g.tls}
	t.Protocols.SetUnencryptedHTTP2(g.tls == nil)
	t.Protocols.SetHTTP2(true)
	return t
}

// do sends a request from the n-th network function.
func (g *rig) do(n int, method, path, body string, header ...string) (*http.Response, string) {
	g.t.Helper()
	transport := g.transport(at(n))
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest(method, g.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp, string(text)
}

// profile returns a profile of the n-th network function, with one service at port
// 7777; change adds to it.
func profile(n int, of sbi.NFType, change ...func(*sbi.NFProfile)) string {
	port := 7777
	p := sbi.NFProfile{
		NFInstanceID: id(n), NFType: of, NFStatus: sbi.Registered, HeartBeatTimer: 10, IPv4Addresses: []string{at(n)},
		NFServices: []sbi.NFService{{
			ServiceInstanceID: "1", ServiceName: "n" + strings.ToLower(string(of)) + "-main", Scheme: "http", NFServiceStatus: sbi.Registered,
			Versions: []sbi.Version{{APIVersionInURI: "v1", APIFullVersion: "1.0.0"}}, IPEndPoints: []sbi.IPEndPoint{{IPv4Address: at(n), Port: &port}},
		}},
	}
	for _, f := range change {
		f(&p)
	}
	text, _ := json.Marshal(p)
	return string(text)
}

func (g *rig) register(n int, of sbi.NFType, change ...func(*sbi.NFProfile)) {
	g.t.Helper()
	if resp, body := g.do(n, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(n), profile(n, of, change...), "Content-Type", "application/json"); resp.StatusCode != 201 {
		g.t.Fatalf("register %d: %s: %s", n, resp.Status, body)
	}
}

func (g *rig) patch(n int, items string) *http.Response {
	g.t.Helper()
	resp, _ := g.do(n, "PATCH", "/nnrf-nfm/v1/nf-instances/"+id(n), items, "Content-Type", "application/json-patch+json")
	return resp
}

// discover asks for a type, as the n-th network function.
func (g *rig) discover(n int, as, target sbi.NFType, more string, header ...string) (status int, found sbi.SearchResult, resp *http.Response) {
	g.t.Helper()
	resp, body := g.do(n, "GET", fmt.Sprintf("/nnrf-disc/v1/nf-instances?target-nf-type=%s&requester-nf-type=%s%s", target, as, more), "", header...)
	if resp.StatusCode == 200 {
		if err := json.Unmarshal([]byte(body), &found); err != nil {
			g.t.Fatalf("%s: %v", body, err)
		}
	}
	return resp.StatusCode, found, resp
}

// vip returns a VIP as the balancer has it, when it is as it should be.
func (g *rig) vip(name string, is func(*api.Vip) bool) *api.Vip {
	g.t.Helper()
	var v *api.Vip
	g.eventually("VIP "+name, func() bool {
		object.Notify(g.proxy.out)
		g.back.mu.Lock()
		defer g.back.mu.Unlock()
		v = g.back.vips[name]
		return v != nil && is(v)
	})
	return v
}

// host has the switch tell that a host with the addresses of some network functions
// is at a port.
func (g *rig) host(port int, n ...int) {
	h := &api.Host{Mac: fmt.Sprintf("02:00:00:00:00:%02x", port), At: &api.Location{Dpid: "0000000000000001", Port: uint32(port)}}
	for _, x := range n {
		h.Ipv4 = append(h.Ipv4, at(x))
	}
	g.feed(&api.HostChanged{Change: "learnt", Host: h})
}
