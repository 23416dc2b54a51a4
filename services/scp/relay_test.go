package scp

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// function is a network function that answers with its number and what it was asked.
type function struct {
	n    int
	at   netip.AddrPort
	stop func()

	mu     sync.Mutex // guards the following
	got    []*http.Request
	body   []byte // of the last one
	bodies []string
	wait   chan struct{} // closed when it may answer
	more   http.Header   // of its answers
}

func (x *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	x.mu.Lock()
	x.got, x.body, x.bodies = append(x.got, r), body, append(x.bodies, string(body))
	wait := x.wait
	for name, v := range x.more {
		w.Header()[name] = v
	}
	x.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-r.Context().Done():
		}
	}
	if r.URL.Path == "/nudm-main/v1/missing" {
		sbi.WriteProblem(w, sbi.Problem(http.StatusNotFound, "USER_NOT_FOUND", ""))
		return
	}
	fmt.Fprintf(w, "%d %s %s %d", x.n, r.Method, r.RequestURI, len(body))
}

// last returns the last request.
func (x *function) last() *http.Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.got[len(x.got)-1]
}

// function starts the n-th network function, which registers a service of its type.
func (g *rig) function(n int, of sbi.NFType, change ...func(*sbi.NFProfile)) *function {
	g.t.Helper()
	l, err := net.Listen("tcp", at(n)+":0")
	if err != nil {
		g.t.Fatal(err)
	}
	x := &function{n: n, at: netip.MustParseAddrPort(l.Addr().String())}
	web := &http.Server{Handler: x, Protocols: new(http.Protocols)}
	web.Protocols.SetUnencryptedHTTP2(true)
	web.Protocols.SetHTTP2(true)
	if g.tls != nil {
		l = tls.NewListener(l, &tls.Config{Certificates: g.tls.Certificates, NextProtos: []string{"h2"}})
	}
	go func() { _ = web.Serve(l) }()
	x.stop = sync.OnceFunc(func() { web.Close() })
	g.t.Cleanup(x.stop)
	port := int(x.at.Port())
	g.register(n, of, append([]func(*sbi.NFProfile){func(p *sbi.NFProfile) { p.NFServices[0].IPEndPoints[0].Port = &port }}, change...)...)
	return x
}

// forUDM are the headers of a delegated discovery of a UDM.
var forUDM = []string{"3gpp-Sbi-Discovery-target-nf-type", "UDM", "3gpp-sbi-discovery-service-names", "nudm-main", "3gpp-Sbi-Discovery-requester-nf-type", "AMF"}

// A request that names its producer does not ask the NRF for anybody.
func TestRelayNamed(t *testing.T) {
	g := newRig(t)
	udm := g.function(5, sbi.UDM)
	for _, header := range [][]string{{"3gpp-Sbi-Target-apiRoot", "http://" + udm.at.String()}, {"3gpp-Sbi-Routing-Binding", "bl=nf-instance; nfinst=" + id(5)}} {
		if resp, body := g.do(1, "POST", "/nudm-main/v1/x", "{}", header...); resp.StatusCode != 200 {
			t.Errorf("%s: %s", resp.Status, body)
		}
	}
	g.nrf.set(func(n *fakeNRF) {
		if len(n.asked) != 0 {
			t.Errorf("the NRF is asked for %q", n.asked)
		}
	})
}

// A producer that cannot be reached costs nothing but the attempt; bodies are bounded.
func TestRelayOfDead(t *testing.T) {
	g := newRig(t)
	one := g.function(5, sbi.UDM)
	g.function(6, sbi.UDM, func(p *sbi.NFProfile) { far := 7; p.NFServices[0].Priority = &far })
	if _, body := g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...); !strings.HasPrefix(body, "5 ") {
		t.Errorf("the preferred one: %s", body)
	}
	one.stop()
	// The first finds the front's connection gone, or ends with it: what may be sent twice
	// goes to the other either way.
	for i, method := range []string{"GET", "POST", "GET", "POST"} {
		if resp, body := g.do(1, method, "/nudm-main/v1/x", strings.Repeat("x", 100*i), forUDM...); resp.StatusCode != 200 || !strings.HasPrefix(body, "6 ") {
			t.Errorf("%s to the other: %s: %s", method, resp.Status, body)
		}
		g.now.Add(restTime + 1) // the preferred one is tried again
	}
	if resp, _ := g.do(1, "POST", "/nudm-main/v1/x", strings.Repeat("x", mostRelayed+1), forUDM...); resp.StatusCode != 413 {
		t.Errorf("a large body: %s", resp.Status)
	}
}

// Parameters that the front does not know are for the NRF to judge; without the NRF, the
// front uses what it knows.
func TestRelayAsksNRF(t *testing.T) {
	g := newRig(t)
	g.function(5, sbi.UDM)
	by := append([]string{"3gpp-Sbi-Discovery-supi", "imsi-1", "Authorization", "Bearer of-the-producer"}, forUDM...)
	for range 3 {
		if resp, body := g.do(1, "GET", "/nudm-main/v1/x", "", by...); resp.StatusCode != 200 {
			t.Errorf("%s: %s", resp.Status, body)
		}
	}
	g.nrf.set(func(n *fakeNRF) {
		if n.searches != 1 {
			t.Errorf("%d searches", n.searches)
		}
		n.fail = "broken"
	})
	g.now.Add(int64(35 * time.Second))
	g.patch(5, `[{"op":"add","path":"/load","value":1}]`)
	for _, header := range [][]string{by, forUDM} {
		if resp, body := g.do(1, "GET", "/nudm-main/v1/x", "", header...); resp.StatusCode != 200 {
			t.Errorf("without the NRF: %s: %s", resp.Status, body)
		}
	}
	if resp, _ := g.do(1, "GET", "/nudm-main/v1/x", "", append([]string{"3gpp-Sbi-Discovery-dnn", "x"}, forUDM...)...); resp.StatusCode < 500 {
		t.Errorf("what only the NRF knows: %s", resp.Status)
	}
}

// TestRelayTries: a request is tried at three producers at most, whatever headers find them.
func TestRelayTries(t *testing.T) {
	g := newRig(t)
	for n := 4; n < 10; n++ {
		g.register(n, sbi.UDM, func(p *sbi.NFProfile) {
			p.NFSetIDList, p.FQDN = []string{"set1.udmset.5gc.mnc070.mcc999"}, "udm.example.org"
		})
	}
	for name, header := range map[string][2]string{
		"a discovery":       {"User-Agent", "AMF-1"},
		"a set, and others": {"3gpp-Sbi-Routing-Binding", "bl=nf-set; nfset=set1.udmset.5gc.mnc070.mcc999"},
		"an instance":       {"3gpp-Sbi-Routing-Binding", "bl=nf-instance; nfinst=" + id(5)},
		"a name":            {"3gpp-Sbi-Target-apiRoot", "http://udm.example.org:7777"},
		"an address":        {"3gpp-Sbi-Target-apiRoot", "http://" + at(5) + ":7777"},
	} {
		req := httptest.NewRequest("GET", "/nudm-main/v1/x", nil)
		req.Header.Set(header[0], header[1])
		for i := 0; i < len(forUDM); i += 2 {
			req.Header.Set(forUDM[i], forUDM[i+1])
		}
		e, err := g.front.relay.route(t.Context(), req, consumer{name: at(1)}, netip.MustParseAddr(at(1)))
		if err != nil || len(e.tries) != mostTries {
			t.Errorf("%s: %v, %+v", name, err, e)
		}
	}
}

// By pair a consumer keeps its producer, by connection each request is balanced; a
// binding indication outlasts the time after which others are balanced anew.
func TestRelayPolicies(t *testing.T) {
	g := newRig(t)
	udms := map[int]*function{}
	for n := 5; n < 8; n++ {
		udms[n] = g.function(n, sbi.UDM, func(p *sbi.NFProfile) { p.HeartBeatTimer = 0; c := 100 * (n - 4); p.NFServices[0].Capacity = &c })
	}
	count := func(requests int) map[string]int {
		got := map[string]int{}
		for range requests {
			_, body := g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...)
			got[strings.Fields(body)[0]]++
		}
		return got
	}
	set := func(p *api.ScpPolicy) {
		t.Helper()
		p.Type = "UDM"
		if p, err := readPolicy(p); err != nil {
			t.Fatal(err)
		} else if _, _, err = g.proxy.policies.Change(t.Context(), "UDM", func(*api.ScpPolicy) (*api.ScpPolicy, error) { return p, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(6); len(got) != 1 {
		t.Errorf("by pair: %v", got)
	}
	set(&api.ScpPolicy{Per: "connection"})
	if got := count(12); got["5"] != 2 || got["6"] != 4 || got["7"] != 6 {
		t.Errorf("weighted: %v", got)
	}
	set(&api.ScpPolicy{Per: "connection", Algorithm: "hash"})
	if got := count(5); len(got) != 1 {
		t.Errorf("hash: %v", got)
	}
	for _, algorithm := range []string{"least", twoChoices} {
		set(&api.ScpPolicy{Per: "connection", Algorithm: algorithm})
		if got := count(5); got["5"]+got["6"]+got["7"] != 5 {
			t.Errorf("%s: %v", algorithm, got)
		}
	}
	set(&api.ScpPolicy{Again: "balance", IdleTimeout: 10})
	all := map[string]int{}
	for range 12 {
		for of := range count(2) {
			all[of]++
		}
		g.now.Add(int64(11 * time.Second))
	}
	if len(all) != 3 {
		t.Errorf("balanced anew: %v", all)
	}
	for _, x := range udms {
		x.mu.Lock()
		x.more = http.Header{"3gpp-Sbi-Binding": {"bl=nf-instance; nfinst=" + id(x.n)}}
		x.mu.Unlock()
	}
	all = count(1)
	for range 6 {
		g.now.Add(int64(11 * time.Second))
		for of := range count(1) {
			all[of]++
		}
	}
	if len(all) != 1 {
		t.Errorf("bound by what it was answered: %v", all)
	}
}
