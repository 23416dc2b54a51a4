package scp

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/sbi"
	"github.com/weft-sdn/weft/wefttest"
)

// crowd returns a proxy that knows 1,000 consumers and producers, half of them of
// one type, and 255 end points, with producers that restrict who may use them by
// type and by domain.
func crowd(t testing.TB) *proxy {
	store := wefttest.NewStore()
	bucket, err := store.Bucket(t.Context(), "scp.policies")
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Endpoints = 1000
	cfg.Vips = []netip.Prefix{netip.MustParsePrefix("127.9.0.0/16")}
	p := newProxy(cfg, object.Bucket(bucket), slog.New(slog.DiscardHandler))
	p.count = newCounts(func(string, string, ...string) Counter { return silent{} })
	for i := range 1000 {
		of := sbi.NFType(fmt.Sprintf("T%d", i%100))
		if i%2 == 0 {
			of = sbi.UDM
		}
		a := fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)
		text := profile(1, of, func(p *sbi.NFProfile) {
			p.NFInstanceID, p.IPv4Addresses, p.NFServices[0].IPEndPoints[0].IPv4Address = id(i), []string{a}, a
			p.FQDN = fmt.Sprintf("nf%d.5gc.example.org", i)
			p.NFServices[0].AllowedNFDomains = []string{`^.*\.5gc\.example\.org$`, `^.*\.other\.example\.org$`}
			p.SNSSAIs = []sbi.Snssai{{SST: uint8(i%8 + 1)}}
		})
		if err := p.register(id(i), []byte(text), netip.MustParseAddr(a), 1); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 255 {
		q := &sbi.Query{TargetNFType: sbi.UDM, Requester: sbi.Requester{NFType: sbi.AMF, FQDN: "a.5gc.example.org"}}
		for bit := range 8 {
			if (i+1)>>bit&1 != 0 {
				q.SNSSAIs = append(q.SNSSAIs, sbi.Snssai{SST: uint8(bit + 1)})
			}
		}
		if _, _, err := p.find(q, &search{}, 1); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// What is done each second, and at each change.
func BenchmarkWant(b *testing.B) {
	p := crowd(b)
	b.ReportMetric(float64(len(p.endpoints)), "endpoints")
	for b.Loop() {
		p.want(2)
	}
}

// What a registration or an update costs.
func BenchmarkEnter(b *testing.B) {
	p := crowd(b)
	x := p.book[id(0)]
	for b.Loop() {
		p.mu.Lock()
		p.enter(x)
		p.mu.Unlock()
	}
}

// What a discovery costs that is the first after a change.
func BenchmarkFind(b *testing.B) {
	p := crowd(b)
	q := &sbi.Query{TargetNFType: sbi.UDM, Requester: sbi.Requester{NFType: sbi.AMF, FQDN: "a.5gc.example.org"}}
	for b.Loop() {
		p.mu.Lock()
		_, _, _ = p.find(q, &search{}, 2)
		p.mu.Unlock()
	}
}

// What a discovery costs that is answered from what is known, without the transport.
func BenchmarkDiscovery(b *testing.B) {
	g := newRig(b)
	g.register(1, sbi.AMF)
	g.register(2, sbi.UDM)
	g.discover(1, sbi.AMF, sbi.UDM, "&service-names=nudm-sdm")
	r := httptest.NewRequest("GET", "/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type=AMF&service-names=nudm-sdm", nil)
	r.RemoteAddr = "127.0.0.1:40000"
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		if g.front.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}

// What storing costs after a change.
func BenchmarkInstances(b *testing.B) {
	p := crowd(b)
	for b.Loop() {
		p.mu.Lock()
		p.instances()
		p.mu.Unlock()
	}
}

// What a thousand instances and many end points cost each second does not grow with
// their product: who may connect is found once for each rule, not for each member
// of each end point.
func TestClientsAreFoundOnce(t *testing.T) {
	p := crowd(t)
	p.want(2)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.groups.clients); n > 4 || len(p.endpoints) < 200 {
		t.Errorf("found %d times for %d end points", n, len(p.endpoints))
	}
	first := p.groups.clients
	g := p.groupsNow()
	if len(g.clients) != len(first) {
		t.Error("found anew without a change")
	}
	p.touch()
	if g = p.groupsNow(); len(g.clients) != 0 {
		t.Error("not found anew after a change")
	}
}
