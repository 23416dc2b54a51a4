package scp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/netspace"
	"github.com/weft-sdn/weft/sbi"
)

// producerIDs are the instances that producers register.
var producerIDs = map[string]string{"one": "11111111-1111-4111-8111-111111111111", "two": "22222222-2222-4222-8222-222222222222"}

// producerPort is where producers listen.
const producerPort = 8888

// faultyProducer is a producer that can fail: a BSF.
type faultyProducer struct {
	bed      *faultBed
	name, id string
	silent   atomic.Bool // sends no heartbeats

	mu   sync.Mutex // guards the following
	host string     // where it is
	web  *http.Server
}

func (x *faultyProducer) address() netip.AddrPort {
	h, _ := x.bed.lab.Host(x.name) // is in the topology
	return netip.AddrPortFrom(h.IPv4.Addr(), producerPort)
}

// at returns the host where it is.
func (x *faultyProducer) at() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.host
}

// listen has it serve in its host.
func (x *faultyProducer) listen() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	l, err := netspace.Listen(context.Background(), x.bed.lab.HostNetns(x.host), x.address())
	if err != nil {
		return err
	}
	x.web = h2c(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, x.id) }))
	web := x.web
	x.bed.work.Go(func() { _ = web.Serve(l) }) // until it is closed
	return nil
}

// close ends it, with its connections.
func (x *faultyProducer) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.web.Close()
}

// profile returns what it registers.
func (x *faultyProducer) profile() string {
	a := x.address()
	return fmt.Sprintf(`{"nfInstanceId": %q, "nfType": "BSF", "nfStatus": "REGISTERED", "heartBeatTimer": %d, "ipv4Addresses": [%q],
"nfServices": [{"serviceInstanceId": "1", "serviceName": "nbsf-management", "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}], "scheme": "http",
"nfServiceStatus": "REGISTERED", "ipEndPoints": [{"ipv4Address": %q, "port": %d}]}]}`, x.id, bedHeartbeat, a.Addr(), a.Addr(), a.Port())
}

// beat registers, and sends heartbeats, until ctx ends.
func (x *faultyProducer) beat(ctx context.Context) {
	registered := false
	for ctx.Err() == nil {
		wait := bedHeartbeat * time.Second / 2
		switch path := "/nnrf-nfm/v1/nf-instances/" + x.id; {
		case x.silent.Load():
			wait = 10 * time.Millisecond
		case !registered:
			status, _, err := x.bed.ask(ctx, x.at(), nrfAt, http.MethodPut, path, x.profile(), "Content-Type", "application/json")
			if registered = err == nil && status/100 == 2; !registered {
				wait = 100 * time.Millisecond
			}
		default:
			status, _, err := x.bed.ask(ctx, x.at(), nrfAt, http.MethodPatch, path, `[{"op":"replace","path":"/nfStatus","value":"REGISTERED"}]`, "Content-Type", "application/json-patch+json")
			if registered = status != http.StatusNotFound; err != nil || status/100 != 2 {
				wait = 100 * time.Millisecond
			}
		}
		_ = backoff.Sleep(ctx, wait)
	}
}

// nrfAt is where consumers send what is for the NRF.
var nrfAt = netip.MustParseAddrPort("10.0.0.1:7777")

// transport connects from a host to one address.
func (b *faultBed) transport(host string, to netip.AddrPort) *http.Transport {
	t := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return netspace.Dial(ctx, b.lab.HostNetns(host), netip.Addr{}, to)
	}}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

// ask sends a request from a host by a connection of its own.
func (b *faultBed) ask(ctx context.Context, host string, to netip.AddrPort, method, path, body string, header ...string) (status int, text []byte, err error) {
	t := b.transport(host, to)
	defer t.CloseIdleConnections()
	return askBy(ctx, t, to, method, path, body, header...)
}

// askBy sends a request by a transport.
func askBy(ctx context.Context, t *http.Transport, to netip.AddrPort, method, path, body string, header ...string) (status int, text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+to.String()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, text, err
}

// askTime is how long a request may take.
const askTime = 3 * time.Second

// discover asks for the producers, with more parameters, and returns their end
// point.
func (b *faultBed) discover(ctx context.Context, host, more string) (at netip.AddrPort, err error) {
	status, text, err := b.ask(ctx, host, nrfAt, http.MethodGet, "/nnrf-disc/v1/nf-instances?target-nf-type=BSF&requester-nf-type=PCF"+more, "")
	if err != nil {
		return at, err
	}
	var found sbi.SearchResult
	if status != http.StatusOK || json.Unmarshal(text, &found) != nil || len(found.NFInstances) != 1 {
		return at, fmt.Errorf("discovery: status %d: %.200s", status, text)
	}
	points := found.NFInstances[0].EndPoints()
	if len(points) == 0 {
		return at, fmt.Errorf("discovery names no end point: %.200s", text)
	}
	return points[0].Addr, nil
}

// loadTick is the pause between two requests of a load.
const loadTick = 10 * time.Millisecond

// pairLoad is the requests of a consumer to the end point: by a connection each, and
// by one connection that is kept.
type pairLoad struct {
	host         string
	first        string // the instance that the consumer has
	sent, failed int
	moved        bool   // a connection has reached another instance
	broken       bool   // the kept connection has broken
	why          string // of the last failure
	last         string // the instance that has answered last
	since        int    // answers of it in a row
}

// load sends requests of a consumer until ctx ends.
func (b *faultBed) load(ctx context.Context, p *pairLoad) {
	kept := b.transport(p.host, b.vip)
	defer kept.CloseIdleConnections()
	dial, dials := kept.DialContext, 0
	kept.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		return dial(ctx, network, address)
	}
	alone := context.WithoutCancel(ctx) // a request that has begun may end
	for ctx.Err() == nil {
		p.sent++
		status, text, err := b.ask(alone, p.host, b.vip, http.MethodGet, "/nbsf-management/v1/x", "")
		switch {
		case err != nil || status != http.StatusOK:
			p.failed++
			p.why = fmt.Sprintf("status %d, %v", status, err)
		default:
			p.moved = p.moved || string(text) != p.first
			if p.last != string(text) {
				p.last, p.since = string(text), 0
			}
			p.since++
		}
		if !p.broken {
			p.sent++
			status, text, err := askBy(alone, kept, b.vip, http.MethodGet, "/nbsf-management/v1/x", "")
			same := string(text) == p.first || dials > 1 // a drained one has its client open another connection
			p.broken = dials > 1
			if err != nil || status != http.StatusOK || !same {
				p.broken = true
				p.failed++
				p.why = fmt.Sprintf("the kept connection: status %d by %.40q, %v", status, text, err)
			}
		}
		time.Sleep(loadTick)
	}
}
