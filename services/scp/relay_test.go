package scp

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
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

// Requests of models C and D reach a producer, and answers have the headers of TS 29.500.
func TestRelay(t *testing.T) {
	g := newRig(t, func(c *Config) { c.NRFTimeout = time.Second })
	udm := g.function(5, sbi.UDM, func(p *sbi.NFProfile) { p.FQDN, p.NFSetIDList = "udm5.example.org", []string{"set1.udmset.example"} })
	closed := g.function(6, sbi.AUSF, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.SMF} })
	amf := g.function(1, sbi.AMF)
	root := "http://" + udm.at.String()
	g.discover(1, sbi.AMF, sbi.UDM, "")
	v := g.vip("scp-udm."+strconv.Itoa(int(udm.at.Port())), func(*api.Vip) bool { return true })
	byName := "http://UDM5.example.org:" + strconv.Itoa(int(udm.at.Port()))
	chosen := "nfinst=" + id(5) + "; nfservinst=1"
	for what, c := range map[string]struct {
		from   int
		header []string
		status int
		cause  sbi.Cause
		id     string // of the producer, in the answer
	}{
		"Model D":                         {1, forUDM, 200, "", chosen},
		"Model D as of Open5GS":           {1, []string{"3gpp-sbi-discovery-target-nf-type", "UDM", "3gpp-sbi-discovery-service-names", "nudm-sdm%2Cnudm-main", "user-agent", "AMF"}, 200, "", chosen},
		"by an instance":                  {1, append([]string{"3gpp-Sbi-Discovery-target-nf-instance-id", chosen}, forUDM...), 200, "", chosen},
		"of an address that is unknown":   {3, forUDM, 200, "", chosen},
		"Model C":                         {1, []string{"3gpp-Sbi-Target-apiRoot", root}, 200, "", ""},
		"by a name":                       {1, []string{"3gpp-Sbi-Target-apiRoot", byName}, 200, "", ""},
		"by an end point":                 {1, []string{"3gpp-Sbi-Target-apiRoot", fmt.Sprintf("http://%s:%d", v.Address, v.Port)}, 200, "", chosen},
		"by a binding":                    {1, []string{"3gpp-Sbi-Routing-Binding", "bl=nf-instance; nfinst=" + id(5)}, 200, "", chosen},
		"by the binding of a set":         {1, []string{"3gpp-Sbi-Routing-Binding", "bl=nf-set; nfinst=" + id(77) + "; nfset=set1.udmset.example"}, 200, "", chosen},
		"a target that has gone, and how": {1, append([]string{"3gpp-Sbi-Target-apiRoot", "http://127.0.1.99:80"}, forUDM...), 200, "", chosen},
		"a target that has gone":          {1, []string{"3gpp-Sbi-Target-apiRoot", "http://127.0.1.99:80"}, 504, sbi.TargetNotReachable, ""},
		"another port of a producer":      {1, []string{"3gpp-Sbi-Target-apiRoot", "http://" + at(5) + ":22"}, 504, sbi.TargetNotReachable, ""},
		"the NRF's machine":               {1, []string{"3gpp-Sbi-Target-apiRoot", g.cfg.NRF}, 504, sbi.TargetNotReachable, ""},
		"the front itself":                {1, []string{"3gpp-Sbi-Target-apiRoot", g.url}, 504, sbi.TargetNotReachable, ""},
		"a root that is none":             {1, []string{"3gpp-Sbi-Target-apiRoot", "//" + udm.at.String()}, 400, "", ""},
		"a binding that is none":          {1, []string{"3gpp-Sbi-Routing-Binding", "x"}, 400, "", ""},
		"a binding to nobody":             {1, []string{"3gpp-Sbi-Routing-Binding", "bl=nf-instance; nfinst=" + id(77)}, 504, sbi.TargetNotReachable, ""},
		"a type that nobody has":          {1, []string{"3gpp-Sbi-Discovery-target-nf-type", "BSF"}, 400, sbi.DiscoveryFailure, ""},
		"no type":                         {1, []string{"3gpp-Sbi-Discovery-service-names", "nudm-main"}, 400, sbi.MandatoryMemberMissing, ""},
		"who says to be another":          {1, []string{"3gpp-Sbi-Discovery-target-nf-type", "UDM", "3gpp-Sbi-Discovery-requester-nf-type", "SMF"}, 403, sbi.RequesterNotAllowed, ""},
		"who may not":                     {1, []string{"3gpp-Sbi-Target-apiRoot", "http://" + closed.at.String()}, 403, sbi.RequesterNotAllowed, ""},
		"a loop":                          {1, append([]string{"Via", "2.0 SCP-" + g.cfg.Listen}, forUDM...), 400, sbi.LoopDetected, ""},
		"too many hops":                   {1, append([]string{"3gpp-Sbi-Max-Forward-Hops", "0"}, forUDM...), 502, sbi.HopsReached, ""},
	} {
		resp, body := g.do(c.from, "POST", "/nudm-main/v1/x%2Fy?z=1", "{}", c.header...)
		if resp.StatusCode != c.status || c.cause != "" && !strings.Contains(body, string(c.cause)) || resp.Header.Get("3gpp-Sbi-Producer-Id") != c.id {
			t.Errorf("%s: %s, producer %q: %s", what, resp.Status, resp.Header.Get("3gpp-Sbi-Producer-Id"), body)
			continue
		}
		if told := resp.Header.Get("3gpp-Sbi-Target-apiRoot"); c.status == 200 && (body != "5 POST /nudm-main/v1/x%2Fy?z=1 2" || (told == root) != (c.id != "")) {
			t.Errorf("%s: target %q: %s", what, told, body)
		}
	}
	g.nrf.set(func(n *fakeNRF) {
		for _, q := range n.asked {
			if strings.Contains(q, "target-nf-type=any") {
				t.Errorf("the NRF is asked for %s", q)
			}
		}
	})
	for name := range udm.last().Header {
		if strings.Contains(name, "Discovery") || strings.Contains(name, "Apiroot") {
			t.Errorf("the producer sees %s", name)
		}
	}
	if got := udm.last(); got.Host != udm.at.String() || got.Header.Get("Via") != "2.0 SCP-"+g.cfg.Listen {
		t.Errorf("the producer sees %q, %v", got.Host, got.Header)
	}
	resp, body := g.do(1, "GET", "/nudm-main/v1/missing", "", forUDM...)
	if resp.StatusCode != 404 || !strings.Contains(body, "USER_NOT_FOUND") || resp.Header.Get("Via") == "" || resp.Header.Get("Server") != "" {
		t.Errorf("the producer's own error: %s, %v: %s", resp.Status, resp.Header, body)
	}
	callback := []string{"3gpp-Sbi-Callback", "Nudm_SDM_Notification", "3gpp-Sbi-Target-apiRoot", "http://" + amf.at.String()}
	if resp, body := g.do(5, "POST", "/any/path", "{}", callback...); resp.StatusCode != 200 || !strings.HasPrefix(body, "1 POST /any/path") {
		t.Errorf("a callback: %s: %s", resp.Status, body)
	}
	if resp, _ := g.do(5, "POST", "/any/path", "{}", "3gpp-Sbi-Callback", "X", "3gpp-Sbi-Target-apiRoot", "http://127.0.1.99:80"); resp.StatusCode != 504 {
		t.Errorf("a callback to nobody: %s", resp.Status)
	}
	if resp, body := g.do(1, "POST", "/nudm-main/v1/x", "{}"); resp.StatusCode != 400 || !strings.Contains(body, string(sbi.MandatoryMemberMissing)) {
		t.Errorf("no target: %s: %s", resp.Status, body)
	}
	for _, path := range []string{"/nudm-main/../x", "/nudm-main/%2e%2e/x", "/./nudm-main"} {
		if resp, _ := g.do(1, "GET", path, "", forUDM...); resp.StatusCode != 400 {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

// A producer that cannot be reached costs nothing but the attempt, one that is silent
// the time that its consumer has; bodies are bounded.
func TestRelayOfDead(t *testing.T) {
	g := newRig(t)
	one, two := g.function(5, sbi.UDM), g.function(6, sbi.UDM, func(p *sbi.NFProfile) { far := 7; p.NFServices[0].Priority = &far })
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
	if resp, _ := g.do(1, "GET", "/nudm-main/v1/x", "", append([]string{"3gpp-Sbi-Target-apiRoot", "http://" + one.at.String()}, forUDM...)...); resp.Header.Get("3gpp-Sbi-Producer-Id") != "nfinst="+id(6)+"; nfservinst=1" {
		t.Errorf("chosen anew: %v", resp.Header)
	}
	two.mu.Lock()
	two.wait = make(chan struct{})
	two.mu.Unlock()
	if resp, body := g.do(1, "POST", "/nudm-main/v1/x", "", append([]string{"3gpp-Sbi-Max-Rsp-Time", "50"}, forUDM...)...); resp.StatusCode != 504 || !strings.Contains(body, string(sbi.TimedOutRequest)) {
		t.Errorf("a silent one: %s: %s", resp.Status, body)
	}
	close(two.wait)
	if resp, _ := g.do(1, "POST", "/nudm-main/v1/x", strings.Repeat("x", mostRelayed+1), forUDM...); resp.StatusCode != 413 {
		t.Errorf("a large body: %s", resp.Status)
	}
	two.stop()
	if resp, body := g.do(1, "POST", "/nudm-main/v1/x", "", forUDM...); resp.StatusCode != 504 || !strings.Contains(body, string(sbi.TargetNotReachable)) || !strings.HasPrefix(resp.Header.Get("Server"), "SCP-") {
		t.Errorf("nobody: %s, %v: %s", resp.Status, resp.Header, body)
	}
	g.now.Add(int64(time.Minute))
	if resp, body := g.do(1, "POST", "/nudm-main/v1/x", "", forUDM...); resp.StatusCode != 504 || !strings.Contains(body, "none of the 2") {
		t.Errorf("late ones: %s: %s", resp.Status, body)
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
