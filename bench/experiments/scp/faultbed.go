package scp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/nf"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/netspace"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/test/testbed"
)

// faultPlans are the plans in which faults are tried: single is every service in one
// process, split the plan split with scp in a process of its own.
func faultPlans() []string { return []string{"single", "split"} }

// faultBed is a core of an NRF, two producers and their consumers, all of which are
// in this process, so that they can fail in every way.
type faultBed struct {
	*site
	plan      string
	nrf       *faultyNRF
	producers []*faultyProducer
	vip       netip.AddrPort
	end       context.CancelFunc // ends what runs here
	work      sync.WaitGroup
}

// The hosts of the bed. consumer and other are consumers, stranger has registered
// nothing.
const (
	nrfHost      = "nrf"
	consumerHost = "consumer"
	otherHost    = "other"
	strangerHost = "stranger"
)

// Of the heartbeats of the bed's producers, in seconds, and how late they may be.
const (
	bedHeartbeat = 2
	bedMargin    = time.Second
)

// faultTopology has four switches in a ring.
func faultTopology() *topology.Topology {
	t := &topology.Topology{Switches: []topology.Switch{{Name: "s1"}, {Name: "s2"}, {Name: "s3"}, {Name: "s4"}},
		Links: []topology.Link{{A: "s1", B: "s2"}, {A: "s2", B: "s3"}, {A: "s3", B: "s4"}, {A: "s4", B: "s1"}}}
	for i, h := range []struct{ name, sw string }{
		{nrfHost, "s1"}, {frontHost, "s1"}, {consumerHost, "s2"}, {otherHost, "s3"}, {strangerHost, "s4"}, {"one", "s3"}, {"two", "s4"}, {"spare", "s2"},
	} {
		t.Hosts = append(t.Hosts, topology.Host{Name: h.name, Switch: h.sw, IPv4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 16), Manage: h.name == frontHost})
	}
	return t
}

// openFaults brings the core up with a weft binary.
func openFaults(ctx context.Context, weft, plan string) (b *faultBed, err error) {
	b = &faultBed{plan: plan}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
			b = nil
		}
	}()
	label := "faults-" + plan
	p, err := builtIn(map[string]string{"single": "5gc", "split": "split"}[plan], "scp-"+label, map[string]map[string]string{"scp": {
		"nrf": "http://10.0.0.1:7777", "listen": `"10.0.0.2:7777"`, "namespace": "weft-" + labName(label) + "." + frontHost, "vips": "[10.0.255.0/24]",
		"margin": bedMargin.String(), "validity": "1s", "nrf_timeout": "500ms",
	}})
	if err != nil {
		return b, err
	}
	if plan == "split" {
		for i := range p.Workers {
			p.Workers[i].Services = slices.DeleteFunc(slices.Clone(p.Workers[i].Services), func(s string) bool { return s == "scp" })
		}
		p.Transport, p.Workers = "grpc", append(p.Workers, testbed.Worker{Name: "scp", Services: []string{"scp"}})
	}
	if b.site, err = openBy(ctx, weft, label, p, faultTopology()); err != nil {
		return b, err
	}
	running, end := context.WithCancel(context.Background())
	b.end = end
	if b.nrf, err = b.newNRF(running); err != nil {
		return b, err
	}
	for _, name := range []string{"one", "two"} {
		x := &faultyProducer{bed: b, name: name, host: name, id: producerIDs[name]}
		if err := x.listen(); err != nil {
			return b, err
		}
		b.producers = append(b.producers, x)
		b.work.Go(func() { x.beat(running) })
	}
	return b, b.settle(ctx)
}

// settle waits until scp knows the core, and the consumers their end point.
func (b *faultBed) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for what := ""; ; {
		list, err := b.show(ctx)
		switch {
		case err != nil:
			what = err.Error()
		case list.Front != "intercepting" || list.Nrf != "ok":
			what = fmt.Sprintf("front %s, NRF %s", list.Front, list.Nrf)
		case len(list.Producers) != 2:
			what = fmt.Sprintf("%d producers", len(list.Producers))
		default:
			at, err := b.discover(ctx, otherHost, "")
			if err == nil && (!b.vip.IsValid() || b.vip == at) && !slices.ContainsFunc(list.Producers, func(p *api.ScpProducer) bool { return p.State != "up" }) {
				b.vip = at
				return nil
			}
			what = fmt.Sprintf("discovery %v %v, producers %v", at, err, list.Producers)
		}
		if backoff.Sleep(ctx, 20*time.Millisecond) != nil {
			return b.Failed(fmt.Errorf("%s: the core is not ready: %s", b.plan, what))
		}
	}
}

// show asks what scp knows of the producers.
func (b *faultBed) show(ctx context.Context) (*api.GetScpResponse, error) {
	conn, err := b.Northbound()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return api.NewScpClient(conn).GetScp(ctx, &api.GetScpRequest{})
}

// vips returns what the controller says of its end points.
func (b *faultBed) vips(ctx context.Context) string {
	conn, err := b.Northbound()
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	list, err := api.NewBalancerClient(conn).ListVips(ctx, &api.ListVipsRequest{})
	return fmt.Sprint(list, err)
}

// Close takes all of it down.
func (b *faultBed) Close() (err error) {
	if b.end != nil {
		b.end()
	}
	for _, x := range b.producers {
		x.close()
	}
	if b.nrf != nil {
		b.nrf.stop()
	}
	b.work.Wait()
	if b.site != nil {
		err = b.site.Close()
	}
	return err
}

// faultyNRF is an NRF that can fail.
type faultyNRF struct {
	bed *faultBed
	ctx context.Context // of all that runs here

	mu   sync.Mutex // guards the following
	mode nrfMode
	nrf  http.Handler
	web  *http.Server
}

// nrfMode is what an NRF does with requests.
type nrfMode int

const (
	answers nrfMode = iota
	silent
	nonsense
)

func (b *faultBed) newNRF(ctx context.Context) (*faultyNRF, error) {
	n := &faultyNRF{bed: b, ctx: ctx}
	return n, n.start()
}

// start has an NRF listen that knows nobody.
func (n *faultyNRF) start() error {
	cfg := nf.DefaultRepository()
	cfg.Validity, cfg.Margin = time.Second, time.Hour // scp, not the NRF, is to judge heartbeats
	repository := nf.NewNRF("http://10.0.0.1:7777", cfg, time.Now, slog.New(slog.DiscardHandler))
	l, err := netspace.Listen(n.ctx, n.bed.lab.HostNetns(nrfHost), netip.MustParseAddrPort("10.0.0.1:7777"))
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nrf, n.web = repository.Handler(), h2c(n)
	web := n.web
	n.bed.work.Go(func() { _ = web.Serve(l) }) // until it is closed
	return nil
}

// stop ends it, with its connections.
func (n *faultyNRF) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.web.Close()
}

func (n *faultyNRF) become(m nrfMode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mode = m
}

// ServeHTTP answers a request (http.Handler).
func (n *faultyNRF) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	mode, h := n.mode, n.nrf
	n.mu.Unlock()
	switch mode {
	case silent:
		select {
		case <-r.Context().Done():
		case <-n.ctx.Done():
		}
	case nonsense:
		_, _ = io.WriteString(w, `{"validityPeriod": "yes", "nfInstances": [[[`)
	default:
		h.ServeHTTP(w, r)
	}
}

// h2c is a server of HTTP/2 without TLS, and HTTP/1.
func h2c(h http.Handler) *http.Server {
	s := &http.Server{Handler: h, Protocols: new(http.Protocols), ReadHeaderTimeout: 5 * time.Second}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}
